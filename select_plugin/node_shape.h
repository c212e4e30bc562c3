/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_NODE_SHAPE_H
#define TOPIARY_SELECT_NODE_SHAPE_H

#include "slurm_glue.h"
#include "snapshot_watch.h"

/*
 * The shape of each node as the snapshot tells it and slurmctld's own counts confirm it. Remembered as long as neither
 * changes: it is asked for each node of each decision.
 */

/*
 * Before a decision; the view stays the caller's, and must stay until the last node_shape. 0, or -1 when memory is
 * short.
 */
int node_shapes_begin(struct snapshot_view *v);

/* The shape of a node, or NULL. One that disagrees is said once for each view, and is none. */
const struct shape *node_shape(int node);

/* Whether a shape is that of the hardware which slurmctld counts on a node. */
bool node_shape_agrees(const struct shape *shape, const node_record_t *node);

void node_shapes_clear(void);

#endif
