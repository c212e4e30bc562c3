/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_PLACEMENT_H
#define TOPIARY_REPLAY_PLACEMENT_H

#include "replay/cluster.h"

/*
 * Chooses nodes and cores as Topiary's select plugin does, with the same code (score/chooser.h): of the nodes that can
 * take a share of the job's tasks those with the lowest cost, of equal ones the first, and on each the cores of that
 * cost; nodes whose cores have the job's memory in their own NUMA nodes come first, if want->memory says so. Properties
 * that the records lack are equal on all nodes here: weights, devices, and the preference for nodes where tasks share
 * no core.
 */
struct placement;

/* NULL when memory is short. */
struct placement *placement_new(const struct cluster *c);
void placement_free(struct placement *l);

/*
 * Chooses job->nodes nodes with the tasks and the cores of each. The caller frees *out; nodes[] is scratch space for as
 * many. 0; 1 when there are not enough; -1 when memory is short.
 */
int placement_choose(struct placement *l, const struct cluster_room *r, const struct past_job *job,
		     const struct request *want, unsigned *nodes, struct cluster_shares **out);

#endif
