/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_NODE_SHAPE_H
#define TOPIARY_SELECT_NODE_SHAPE_H

#include "slurm_glue.h"
#include "snapshot_watch.h"

/*
 * The shape of each node: the snapshot's, checked against slurmctld's own counts. Cached until either changes, because
 * each decision needs it for each node.
 */

/*
 * Call before a decision; the view remains the caller's and must stay valid until the last node_shape. Returns 0, or -1
 * when memory is short.
 */
int node_shapes_begin(struct snapshot_view *v);

/*
 * The shape of a node, or NULL. A shape that disagrees with Slurm's counts is logged once for each view and not used.
 */
const struct shape *node_shape(int node);

/* Whether a shape matches the hardware that slurmctld counts on a node. */
bool node_shape_agrees(const struct shape *shape, const node_record_t *node);

void node_shapes_clear(void);

#endif
