/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "replay/cluster.h"

/*
 * The choice of nodes and cores in a replay, by Topiary's score or as by Slurm alone, and the audit of a choice by the
 * same score. All return 0; 1 when there are not enough nodes; -1 when memory is short. The caller frees *out; nodes[]
 * is scratch space for job->nodes.
 */
struct placer;

/* NULL when memory is short. */
struct placer *placer_new(const struct cluster *c);
void placer_free(struct placer *p);

/*
 * As Topiary's select plugin does, with the same code (score/chooser.h): of the nodes that can take a share of the
 * job's tasks those with the lowest cost, of equal ones the first, and on each the cores of that cost; nodes whose
 * cores have the job's memory in their own NUMA nodes come first, if want->memory says so. A job with GPUs gets nodes
 * that have them, not cores near them. Properties that the records lack are equal on all nodes here: weights, and the
 * preference for nodes where tasks share no core.
 */
int placer_choose(struct placer *p, const struct cluster_room *r, const struct past_job *job,
		  const struct request *want, unsigned *nodes, struct cluster_shares **out);

/*
 * A model of Slurm's select/cons_tres with CR_Core, for jobs that specify numbers of nodes and tasks, on nodes of one
 * weight without a network topology. Source: Slurm 22.05.8, src/plugins/select/cons_tres/job_test.c (_eval_nodes,
 * _cpus_to_use) and cons_common/dist_tasks.c (_cyclic_sync_core_bitmap, _block_sync_core_bitmap). Of the rows of
 * adjacent nodes that can take the job's tasks, the one with the fewest CPUs that suffice, and in it the first nodes,
 * or for the last one the node with the fewest CPUs; on a node cores from each socket in turn (tasks of several CPUs
 * fill socket by socket), or with CR_CORE_DEFAULT_DIST_BLOCK the socket that fits best, or the one with the most free
 * cores, and so on. Sockets are packages. Of GRES only the number is counted. Boards, constraints within a node and
 * shared nodes are not modelled.
 */
int stock_choose(const struct cluster_room *r, const struct past_job *job, bool block, unsigned *nodes,
		 struct cluster_shares **out);

/*
 * What a job's cores touch, against the cores that the score would have chosen at that moment on each node that the job
 * could have had, with its memory near where it is near as it lies: the numbers of packages, NUMA nodes, L3 caches and
 * dies. A level that a node lacks counts as in score.h.
 */
enum judged_level { JUDGED_PACKAGE, JUDGED_NUMA, JUDGED_L3, JUDGED_LEVELS };
enum level judged_level(enum judged_level j);

struct judgement {
	bool split_own[JUDGED_LEVELS];	/* on more domains than necessary, on one of its nodes */
	bool split_any[JUDGED_LEVELS];	/* the same with another node instead */
	bool dominated;			/* another choice touches fewer domains at a level, and nowhere more */
	unsigned broken;		/* packages that were entirely free and have some free cores left */
	unsigned touched, ideal;	/* packages, NUMA nodes, L3 caches; the least on the best empty node */
	bool memory_far;		/* the NUMA nodes of its cores did not have its memory, on one of its nodes */
	bool memory_needless;		/* and those of other free cores had, there or on another node */
};

/* By the room before the shares were allocated. */
int placer_judge(struct placer *p, const struct cluster_room *r, const struct past_job *job,
		 const struct cluster_shares *shares, struct judgement *out);
