/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_STOCK_H
#define TOPIARY_REPLAY_STOCK_H

#include "replay/cluster.h"

/*
 * A model of Slurm's select/cons_tres with CR_Core, for jobs that specify numbers of nodes and tasks, on nodes of one
 * weight without a network topology. Source: Slurm 22.05.8, src/plugins/select/cons_tres/job_test.c (_eval_nodes,
 * _cpus_to_use) and cons_common/dist_tasks.c (_cyclic_sync_core_bitmap, _block_sync_core_bitmap). Sockets are packages.
 * Memory, GRES, boards, constraints within a node and shared nodes are not modelled.
 */

/*
 * Chooses as many nodes as the job wants, in ascending order, into nodes[job->nodes]: of the rows of adjacent nodes
 * that can take the job's tasks, the one with the fewest CPUs that suffice, and in it the first nodes, or for the last
 * one the node with the fewest CPUs. 0; 1 when there are not enough nodes; -1 when memory is short.
 */
int stock_nodes(const struct cluster_room *r, const struct past_job *job, unsigned *nodes);

/* The choice of a node's cores: by default, and with CR_CORE_DEFAULT_DIST_BLOCK. */
enum stock_cores {
	STOCK_CYCLIC,		/* cores from each socket in turn; tasks of several CPUs fill socket by socket */
	STOCK_BLOCK,		/* the socket that fits best, or the one with the most free cores, and so on */
};

/* Fills the mask of a node share. */
void stock_seat(const struct cluster_room *r, const struct past_job *job, enum stock_cores how,
		struct cluster_share *seat);

#endif
