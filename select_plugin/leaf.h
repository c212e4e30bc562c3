/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_LEAF_H
#define TOPIARY_SELECT_LEAF_H

#include "slurm_glue.h"

/*
 * The leaf switch (topology/tree) or block (topology/block) of each node. A job in one of them is as near together as
 * any can be: no other choice is on fewer switches or blocks. Read from Slurm's topology plugin and kept until the
 * nodes change or leaf_forget. The caller holds slurmctld's node lock.
 */

/*
 * Reads the leaves for the job. Returns their number; 0 if the network of its partition has none that is known here:
 * another plugin, or not the cluster's own topology; or memory is short.
 */
unsigned leaf_count(const job_record_t *job);

#define LEAF_NONE UINT32_MAX

/* The leaf of a node, below that number; LEAF_NONE for a node that has none or several, or whose place has changed. */
uint32_t leaf_of(int node);

void leaf_forget(void);

#endif
