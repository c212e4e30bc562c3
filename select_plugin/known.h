/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_KNOWN_H
#define TOPIARY_SELECT_KNOWN_H

#include "slurm_glue.h"
#include "snapshot_watch.h"

/*
 * The shape of each node as the snapshot tells it and slurmctld's own counts confirm it. Remembered as long as neither
 * changes: it is asked for each node of each decision.
 */

/*
 * Before a decision; the view stays the caller's, and must stay until the last known_shape. 0, or -1 when memory is
 * short.
 */
int known_begin(struct snapshot_view *v);

/* The shape of a node, or NULL. One that disagrees is said once for each view, and is none. */
const struct shape *known_shape(int node);

/* Whether a shape is that of the hardware which slurmctld counts on a node. */
bool known_agrees(const struct shape *shape, const node_record_t *node);

void known_forget(void);

#endif
