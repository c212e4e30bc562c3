/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SNAPSHOT_WATCH_H
#define TOPIARY_SELECT_SNAPSHOT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/err.h"
#include "shape/shape.h"
#include "shape/snapshot.h"

/*
 * The snapshot file, kept in memory by a thread of its own that looks at it every `poll` seconds, so that the scheduler
 * never waits for a file. No Slurm in here.
 *
 * A file that is absent, damaged or contradicts itself is said once; what was read last stays. A file with a checksum
 * is believed at once. One without is believed when it has rested for a second and did not change while it was read:
 * nothing else tells whether somebody is writing into it.
 *
 * `say` gets one line without a newline, of printable characters: trouble, or what was read. It is called by the
 * thread. 0, or -1 with an error and nothing started. With poll 0 there is no thread, and the caller looks.
 */
int snapshot_watch_start(const char *path, unsigned poll, void (*say)(bool trouble, const char *line), struct err *e);

/* Look now. Only for a watch without a thread. */
void snapshot_watch_check(void);

/* Stop and join the thread; what was read stays until snapshot_watch_drop. Both do nothing when there is nothing. */
void snapshot_watch_stop(void);
void snapshot_watch_drop(void);

/* What was read last, or NULL; it does not change, and stays until snapshot_view_release, which accepts NULL. */
struct snapshot_view;
struct snapshot_view *snapshot_view_get(void);
void snapshot_view_release(struct snapshot_view *v);

/* The shape of a node, or NULL; in constant time. Borrowed from the view. */
const struct shape *snapshot_view_shape(const struct snapshot_view *v, const char *node);

/* All shapes, each with its name: shapes[*n]. Borrowed from the view. */
const struct snapshot_shape *snapshot_view_shapes(const struct snapshot_view *v, size_t *n);

size_t snapshot_view_nodes(const struct snapshot_view *v);

/*
 * Never the same for two views of a process, and never 0: what was worked out for shapes of another view is not for
 * this one.
 */
unsigned long snapshot_view_serial(const struct snapshot_view *v);

/* When it was read. */
time_t snapshot_view_time(const struct snapshot_view *v);

/*
 * True once for each node of a view: for a caller who says something about it once. Callers take turns by themselves.
 */
bool snapshot_view_first(struct snapshot_view *v, const char *node);

#endif
