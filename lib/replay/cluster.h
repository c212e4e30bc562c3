/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_CLUSTER_H
#define TOPIARY_REPLAY_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/jobs.h"
#include "shape/snapshot.h"

/*
 * The cluster that a replay runs on: a snapshot's nodes, sorted by name as slurmctld has them, and which of their cores
 * are free.
 */

struct range {
	unsigned first, cores;
};

struct ranges {
	struct range *list;
	size_t n;
};

/* A shape, and what is asked of it again and again. */
struct kind {
	const struct shape *shape;
	unsigned index;			/* in the cluster */
	unsigned threads;		/* PUs of each core, as Slurm counts them */
	unsigned words;			/* of a set of its cores, as score.h has them */
	struct ranges at[LEVEL_CORE];	/* the domains of a level, or of the next level out that has some */
};

struct cluster_node {
	char *name;
	const struct kind *kind;
	size_t word;			/* where its cores begin, in a room */
};

#define CLUSTER_NODE_CORES 32767u	/* at most; counts of domains have 15 bits */

struct cluster {
	struct kind *kinds;
	size_t nkinds;
	struct cluster_node *nodes;
	size_t n;
	size_t words;
	unsigned long long cores;
};

/*
 * The snapshot is borrowed until cluster_free, which accepts NULL. NULL with an error: no host list, a node told of
 * twice, none, too many cores.
 */
struct cluster *cluster_new(const struct snapshot *s, struct err *e);
void cluster_free(struct cluster *c);
bool cluster_has(const struct cluster *c, const char *name);

/* What a job has of one node. */
struct node_share {
	unsigned node, tasks, cores;
	uint64_t *mask;			/* these cores */
};

struct job_nodes {
	size_t n;
	struct node_share list[];		/* by index of the node; the masks stand behind them */
};

/*
 * Seats on job->nodes nodes, in ascending order; its tasks are dealt out, the masks empty. NULL when memory is short;
 * free(3) it.
 */
struct job_nodes *seats_new(const struct cluster *c, const struct past_job *job, const unsigned *nodes);

/* Cores of each task of a job on a node, 1 where tasks may share a core. */
unsigned job_task_cores(const struct past_job *job, const struct kind *kind);
/* Cores that so many of its tasks take: Slurm gives whole ones. */
unsigned job_cores(const struct past_job *job, unsigned tasks, const struct kind *kind);
/* The most tasks that the job has on a node. */
unsigned job_node_tasks(const struct past_job *job);

/* Which cores are free. */
struct room {
	const struct cluster *cluster;
	uint64_t *words;
	unsigned *count;		/* of each node */
	unsigned long long total;
	unsigned **reach;		/* reach[kind][k]: nodes of a kind with at least k free cores; NULL in a copy */
};

/* All free. 0, or -1 when memory is short; free with room_free. */
int room_init(struct room *r, const struct cluster *c, bool with_reach);
void room_copy(struct room *to, const struct room *from);
void room_free(struct room *r);

static inline const uint64_t *room_node(const struct room *r, unsigned node)
{
	return &r->words[r->cluster->nodes[node].word];
}

/* 0, or -1 with nothing taken when one of the cores is not free. */
int room_occupy(struct room *r, const struct job_nodes *s);
void room_release(struct room *r, const struct job_nodes *s);

/*
 * Can the node hold the most tasks that the job has on a node, within one domain of the level when that is not
 * LEVEL_NODE?
 */
bool room_holds(const struct room *r, unsigned node, const struct past_job *job, enum level within);
/* Can as many nodes as the job wants? The room has its reach. */
bool room_can(const struct room *r, const struct past_job *job, enum level within);

/* Cores of a set within a range. */
unsigned range_count(const uint64_t *words, struct range r);

#endif
