/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_REPLAY_PARTS_H
#define TOPIARY_REPLAY_REPLAY_PARTS_H

#include "replay/cluster.h"
#include "replay/replay.h"

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

/* The sums during a replay, and the resulting figures. */
struct tally {
	const struct cluster *cluster;
	struct replay_result sums;
	long long *waits;
	unsigned *loose[JUDGED_LEVELS];	/* by node: free cores in partly used domains; */
	unsigned long long loose_now[JUDGED_LEVELS], free_now;
	double loose_time[JUDGED_LEVELS], free_time;
	long long first, last;		/* times */
	double ratios;
};

/* For so many jobs, beginning at a time, on an empty cluster. 0, or -1 when memory is short; free with tally_free. */
int tally_init(struct tally *t, const struct cluster *c, size_t jobs, long long from);
void tally_free(struct tally *t);

/* Advances the time. */
void tally_pass(struct tally *t, long long now);
/* The room changed on these nodes. */
void tally_room(struct tally *t, const struct cluster_room *r, const struct cluster_shares *s);
void tally_job(struct tally *t, const struct past_job *job, const struct judgement *j, long long wait);

void tally_end(struct tally *t, struct replay_result *out);

#endif
