/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_STOCK_H
#define TOPIARY_REPLAY_STOCK_H

#include "replay/cluster.h"

/*
 * A model of Slurm's select/cons_tres with CR_Core: what it does with a job that names how many nodes and tasks it
 * wants, on nodes of one weight without a network topology. Source: Slurm 22.05.8,
 * src/plugins/select/cons_tres/job_test.c (_eval_nodes, _cpus_to_use) and cons_common/dist_tasks.c
 * (_cyclic_sync_core_bitmap, _block_sync_core_bitmap). Sockets are packages. It leaves out memory, GRES, boards,
 * constraints within a node and shared nodes.
 */

/*
 * Choose as many nodes as the job wants, in ascending order, into nodes[job->nodes]: of the rows of neighbours that can
 * take the job's tasks, the one with the least CPUs that is enough for all that is wanted, and in it the first nodes,
 * or for the last one to be chosen the node with the least CPUs. 0; 1 when there are not enough nodes; -1 when memory
 * is short.
 */
int stock_nodes(const struct room *r, const struct past_job *job, unsigned *nodes);

/* How cores of a node are chosen: by default, and with CR_CORE_DEFAULT_DIST_BLOCK. */
enum stock_cores {
	STOCK_CYCLIC,		/* cores from each socket in turn; tasks of several CPUs fill socket by socket */
	STOCK_BLOCK,		/* the socket that they fit into best, or the one with the most free cores, and so on */
};

/* Fill the mask of a seat. */
void stock_seat(const struct room *r, const struct past_job *job, enum stock_cores how, struct node_share *seat);

#endif
