/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/jobs.h"
#include "shape/snapshot.h"

/*
 * The cluster of a replay: a snapshot's nodes, sorted by name as in slurmctld, and which of their cores and how much of
 * their memory is free.
 */

struct cluster_range {
	unsigned first, cores;
};

struct cluster_ranges {
	struct cluster_range *list;
	size_t n;
};

/* A shape, with values that are needed repeatedly. */
struct cluster_kind {
	const struct shape *shape;
	unsigned index;			/* in the cluster */
	unsigned threads;		/* PUs of each core, in Slurm's count */
	unsigned words;			/* of a set of its cores (score.h) */
	unsigned long long memory;	/* MB of all NUMA nodes; 0: the shape does not state it, any amount is free */
	unsigned gpus;
	struct cluster_ranges at[LEVEL_CORE];	/* the domains of a level, or of the next level out that has some */
};

struct cluster_node {
	char *name;
	const struct cluster_kind *kind;
	size_t word;			/* the first word of its cores in a room */
	size_t core;			/* the first core, counted over all nodes */
};

#define CLUSTER_NODE_CORES 32767u	/* at most; counts of domains have 15 bits */

struct cluster {
	struct cluster_kind *kinds;
	size_t nkinds;
	unsigned numas_max;		/* of all kinds, the most NUMA nodes whose memory counts (shape_numas) */
	unsigned words_max;		/* the most of a kind */
	const struct cluster_kind *largest;	/* with the most cores */
	bool has_gpus;			/* else those of jobs are not counted */
	struct cluster_node *nodes;
	size_t n;
	size_t words;
	unsigned long long cores;
};

/*
 * The snapshot is borrowed until cluster_free, which accepts NULL. NULL with an error: an invalid host list, a node
 * listed twice, no nodes, too many cores.
 */
struct cluster *cluster_new(const struct snapshot *s, struct err *e);
void cluster_free(struct cluster *c);
bool cluster_has(const struct cluster *c, const char *name);

/* A job's share of one node. */
struct cluster_share {
	unsigned node, tasks, cores;
	uint64_t *mask;			/* these cores */
	unsigned long long memory;	/* MB */
	unsigned gpus;
};

struct cluster_shares {
	size_t n;
	struct cluster_share list[];		/* by index of the node; the masks are stored behind them */
};

/*
 * Shares of job->nodes nodes, in ascending order; its tasks are distributed, the masks are empty. NULL when memory is
 * short; free it with free(3).
 */
struct cluster_shares *cluster_shares_new(const struct cluster *c, const struct past_job *job, const unsigned *nodes);

/* Cores of a task alone; and of so many tasks, which may share some: on two-way SMT two of 7 CPUs have 7 together. */
unsigned cluster_job_task_cores(const struct past_job *job, const struct cluster_kind *kind);
unsigned cluster_job_cores(const struct past_job *job, unsigned tasks, const struct cluster_kind *kind);

/* The free cores, and the memory and GPUs that jobs hold. */
struct cluster_room {
	const struct cluster *cluster;
	uint64_t *words;
	unsigned *count;		/* by node */
	unsigned long long total;
	unsigned long long *held;	/* MB, by node */
	unsigned *gpus;			/* by node */
	uint32_t *used;			/* the same by core, as in score/numa_memory.h */
	unsigned **reach;		/* reach[kind][k]: nodes of a kind with at least k free cores; NULL in a copy */
};

/* Initially all are free. 0, or -1 when memory is short; free with cluster_room_free. */
int cluster_room_init(struct cluster_room *r, const struct cluster *c, bool with_reach);
void cluster_room_copy(struct cluster_room *to, const struct cluster_room *from);
void cluster_room_free(struct cluster_room *r);

static inline const uint64_t *cluster_room_node(const struct cluster_room *r, unsigned node)
{
	return &r->words[r->cluster->nodes[node].word];
}

/* 0, or -1 with nothing changed when one of the cores, or the memory or GPUs, are not free. */
int cluster_room_occupy(struct cluster_room *r, const struct cluster_shares *s);
void cluster_room_release(struct cluster_room *r, const struct cluster_shares *s);

/* So much memory, and GPUs. */
bool cluster_room_has(const struct cluster_room *r, unsigned node, unsigned long long mb, unsigned gpus);
/*
 * Whether the node has room for the most tasks of the job on a node and for its memory and GPUs, within one domain of
 * the level unless that is LEVEL_NODE.
 */
bool cluster_room_holds(const struct cluster_room *r, unsigned node, const struct past_job *job, enum level within);
/* Whether as many nodes as the job wants have. The room must have its reach. */
bool cluster_room_can(const struct cluster_room *r, const struct past_job *job, enum level within);

/* Cores of a set within a range. */
unsigned cluster_range_count(const uint64_t *words, struct cluster_range r);
