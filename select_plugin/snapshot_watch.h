/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SNAPSHOT_WATCH_H
#define TOPIARY_SELECT_SNAPSHOT_WATCH_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/shape.h"

/*
 * The snapshot file, kept in memory by a thread of its own that looks at it every `poll` seconds, so that the scheduler never
 * waits for a file. A file that cannot be read is said once; what was read last stays.
 */
int snapshot_watch_start(const char *path, unsigned poll, struct err *e);

/* Stop and join the thread; what was read stays until snapshot_watch_drop. Both do nothing when there is nothing. */
void snapshot_watch_stop(void);
void snapshot_watch_drop(void);

/* What was read last, or NULL; it does not change, and stays until snapshot_view_put, which accepts NULL. */
struct snapshot_view;
struct snapshot_view *snapshot_view_get(void);
void snapshot_view_put(struct snapshot_view *v);

/* The shape of a node, or NULL; in constant time. */
const struct shape *snapshot_view_shape(const struct snapshot_view *v, const char *node);

/* True once for each node of a view: for a caller who says something about it once. Callers take turns by themselves. */
bool snapshot_view_first(struct snapshot_view *v, const char *node);

#endif
