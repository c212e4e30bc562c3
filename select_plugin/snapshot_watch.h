/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SNAPSHOT_WATCH_H
#define TOPIARY_SELECT_SNAPSHOT_WATCH_H

#include "base/err.h"
#include "shape/shape.h"
#include "shape/snapshot.h"

/*
 * The snapshot file, kept in memory by a thread that checks it every `poll` seconds, so that the scheduler never waits
 * for a file. Independent of Slurm.
 *
 * A file that is absent, damaged or inconsistent is reported once; the last good one remains in use. A file with a
 * valid checksum is accepted at once. One without a checksum is accepted when it has not changed for a second, nor
 * while it was read: there is no other sign that a program is still writing it.
 *
 * The thread calls `say` with one line of printable characters without newline: an error, or what was read. Returns 0,
 * or -1 with an error and nothing started. With poll 0 there is no thread, and the caller checks.
 */
int snapshot_watch_start(const char *path, unsigned poll, void (*say)(bool trouble, const char *line), struct err *e);

/* Checks the file now. Only for a watch without a thread. */
void snapshot_watch_check(void);

/*
 * Stops and joins the thread; the last view stays until snapshot_watch_drop. Both may be called when nothing was
 * started.
 */
void snapshot_watch_stop(void);
void snapshot_watch_drop(void);

/* The last view, or NULL. It does not change, and stays valid until snapshot_view_release, which accepts NULL. */
struct snapshot_view;
struct snapshot_view *snapshot_view_get(void);
void snapshot_view_release(struct snapshot_view *v);

/* The shape of a node, or NULL; in constant time. Borrowed from the view. */
const struct shape *snapshot_view_shape(const struct snapshot_view *v, const char *node);

/*
 * A shape of the view with its first cores alone (shape_first_cores), or NULL when memory is short. Borrowed from the
 * view. Any thread may call it.
 */
const struct shape *snapshot_view_first_cores(struct snapshot_view *v, const struct shape *of, unsigned cores);

/* All shapes, each with its name: shapes[*n]. Borrowed from the view. */
const struct snapshot_shape *snapshot_view_shapes(const struct snapshot_view *v, size_t *n);

size_t snapshot_view_nodes(const struct snapshot_view *v);

/*
 * Unique among all views of a process and never 0: results computed for shapes of another view do not apply to this
 * one.
 */
unsigned long snapshot_view_serial(const struct snapshot_view *v);

/*
 * True once for each node of a view, for a caller that logs something about it once. The caller serialises the calls.
 */
bool snapshot_view_first(struct snapshot_view *v, const char *node);

#endif
