/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_PLACEMENT_H
#define TOPIARY_REPLAY_PLACEMENT_H

#include "replay/cluster.h"

/*
 * Nodes and cores as Topiary's select plugin chooses them, by the same code (score/chooser.h): of the nodes that can
 * take a share of the job's tasks those where its cores have the least cost, of equal ones the first, and on each the
 * cores of that cost. What the records do not have is equal on all nodes here: weights, memory, devices, and whether
 * tasks that share a core had rather not.
 */
struct placement;

/* NULL when memory is short. */
struct placement *placement_new(const struct cluster *c);
void placement_free(struct placement *l);

/*
 * Choose job->nodes nodes with the tasks and the cores of each: *out is to be freed, nodes[] is scratch for as many. 0;
 * 1 when there are not enough; -1 when memory is short.
 */
int placement_choose(struct placement *l, const struct room *r, const struct past_job *job, const struct request *want,
		     unsigned *nodes, struct job_nodes **out);

#endif
