/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <slurm/slurm.h>

#include "base/core_set.h"
#include "cmd.h"
#include "score/request.h"
#include "shape/snapshot.h"
#include "slurm_asked.h"

/*
 * Who has which cores of the cluster now: slurmctld's records of nodes and jobs, as any user may read them, over the
 * shapes of the snapshot. For `topiary why` of jobs that wait and `topiary fragmentation`.
 */

/* A job with cores of a node. */
struct now_holder {
	const job_info_t *job;
	uint64_t *cores;
	const char *gres;	/* what it has there, "gpu:a100:2(IDX:0-1)"; NULL: nothing */
};

struct now_node {
	const node_info_t *info;
	const struct shape *shape;	/* of as many cores as Slurm has */
	uint64_t *free;			/* cores that no job has and Slurm does not reserve for the system */
	struct now_holder *holders;
	size_t nholders;
	/* Why it is left out of all that is said, in the order of topiary(1), fragmentation. */
	enum now_state { NOW_USED, NOW_DOWN, NOW_UNKNOWN, NOW_HIDDEN } state;
};

struct now {
	node_info_msg_t *slurm_nodes;
	partition_info_msg_t *partitions;
	job_info_msg_t *jobs;
	struct snapshot *snapshot;
	struct directory directory;
	char *topology;			/* in scontrol's words, of topology_name; NULL: not read yet */
	const char *topology_name;	/* as the partition has it; NULL: the cluster's */
	struct string_map names;
	struct now_node *nodes;		/* in slurmctld's order, by the numbers of names */
	size_t n;
};

/* 0, or -1 with an error. Free it in either case. */
int now_load(const struct cmd *c, struct now *out, struct err *e);
void now_free(struct now *n);

/* What a job needs to start. */
struct now_need {
	unsigned nodes, cores;	/* on each node so many cores in one domain of the level; 0: the whole node */
	unsigned fewer_nodes, fewer;	/* of the nodes, so many need only that many cores */
	unsigned cpus;		/* that the whole node has at least */
	enum level level;
	const struct slurm_parts *parts;	/* NULL: nodes anywhere; else whole units, each in one part, on rings
						 * neighbours and each on a ring of its own, as in topology/ring */
	unsigned unit;
};

/* A domain of a node that has the cores, and when, if every job ends by its limit. */
struct now_domain {
	const struct now_node *node;
	enum level level;
	unsigned number, first, cores;	/* its number among those of its level on the node, from 0; its cores */
	time_t at;			/* 0: now */
};

/* Those that have them first. */
struct now_wait {
	struct now_domain *list;
	size_t n;			/* as many as nodes; 0: never, as far as is known */
	time_t at;			/* when the last has them */
	const job_info_t *holders[8];	/* that have to end, in the order of their ends; the first of them */
	size_t nholders;
};

/*
 * On nodes that the job may have. 0, or -1 if that cannot be known here: the job names features, a reservation or only
 * some of its nodes. The caller frees the list.
 */
int now_first(const struct now *n, const job_info_t *job, const struct now_need *need, struct now_wait *out);

/* Of so many cores from the first on, those in the set. */
unsigned now_count(const uint64_t *set, unsigned first, unsigned cores);

/* "14:30:00" of today, else "2026-11-28T14:30:00"; "12", "12_3" or "12+1"; the user's name, else number. */
const char *now_time(time_t at, char text[static 32]);
const char *now_job_name(const job_info_t *job, char text[static 64]);
const char *now_user(const job_info_t *job, char text[static 64]);
