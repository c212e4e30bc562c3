/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_LEAST_H
#define TOPIARY_REPLAY_LEAST_H

#include "replay/cluster.h"

/*
 * Nodes and cores as Topiary's select plugin chooses them: of the nodes that can take the job's tasks those where its
 * cores have the least cost (score/score.h), of equal ones the first, and on each the cores of that cost.
 */
struct least;

/* NULL when memory is short. */
struct least *least_new(const struct cluster *c);
void least_free(struct least *l);

/* Choose job->nodes nodes, ascending, into nodes[]. 0; 1 when there are not enough; -1 when memory is short. */
int least_nodes(struct least *l, const struct room *r, const struct past_job *job, const struct request *want,
		unsigned *nodes);

/* Fill the mask of a seat: 0; 1 when these cores cannot be had; -1. */
int least_seat(const struct room *r, const struct past_job *job, const struct request *want, struct node_share *seat);

#endif
