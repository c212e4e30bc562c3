/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "score/fit_cache.h"

/*
 * The choice of a job's nodes and of the tasks on each, for the select plugin and the replay. The caller provides the
 * nodes and what they can hold. Independent of Slurm.
 */

/* A node that can take some of a job's tasks, and its cost. */
struct candidate_node {
	int node;
	uint32_t tasks;
	unsigned cores;			/* the number of cores, whatever the tasks need; 0: what they need */
	unsigned need_cores;		/* the number that was scored: cores, or what the tasks need */
	bool required;			/* the job names it */
	uint64_t weight;		/* set by the administrator: lighter nodes come first whatever their shape */
	bool memory_far;		/* the NUMA nodes of the cores cannot hold the job's memory */
	bool mixes_kinds;		/* the cores are of several kinds */
	bool devices_far;		/* the cores are not all near the devices, though these have a known place */
	unsigned devices_unserved;	/* of struct device_set */
	bool shares_cores;		/* tasks would share cores here */
	unsigned spare;			/* cores of a job of whole nodes that its tasks do not need */
	uint64_t worth;			/* of the whole node to other jobs (chooser_worth) */
	unsigned free;			/* chooser_free; 0 for spread tasks, which want an empty node */
	bool queue_first;		/* all nodes are in one front (request_queue_first): worth comes first */
	unsigned front;			/* set by candidate_nodes_sort */
	const struct score_cost *cost;	/* borrowed from the cache, as fit is */
	struct node_fit *fit;		/* for fit_cores; NULL: score it again */
};

/* Nodes with free GPUs that the job does not request are worth more than others; then more cores, then more memory. */
uint64_t chooser_worth(bool gpus, unsigned cores, uint64_t memory_mb);

/*
 * The order of nodes of fewer than 65,536 cores that are alike up to their free cores: the fewest first. For a job that
 * needs several nodes those in use that it does not fill come first, then those that it fills, then idle ones: a node
 * that it shares with another job is whole again only when the later of both ends (decision 52).
 */
unsigned chooser_free(unsigned free, unsigned need, bool idle, bool several);

/*
 * The order of the choice: required nodes, lighter nodes, cores near the devices, cores near all of these, memory in
 * the cores' own NUMA nodes, cores of one kind, more tasks, no tasks that share cores, fewer spare cores, fewer domains
 * beyond the wanted level and fewer cut tasks; then the front, the node that is worth least, fewer domains touched, the
 * order of the free cores (chooser_free), lower cost, lower index.
 *
 * Front 0 is the Pareto front of nodes that are equal up to there: on no other one would the job touch fewer domains of
 * some level, from packages to L3 caches, and more of none; the next front is that of the rest, and so on. Of each node
 * the cores of its cost count: other cores of it, which touch more packages and fewer L3 caches, may dominate those of
 * another node (none of 4,200 placements in replays, 1 of 1,200 on slurmctld: decision 45). Within a front the job
 * gets the node that other jobs miss least: small jobs leave the large nodes to large jobs, and fill nodes in use
 * before they break empty ones.
 */
enum chooser_row {
	CHOOSER_REQUIRED, CHOOSER_WEIGHT, CHOOSER_DEVICES, CHOOSER_UNSERVED, CHOOSER_MEMORY, CHOOSER_KINDS,
	CHOOSER_TASKS, CHOOSER_SHARING, CHOOSER_SPARE, CHOOSER_WHOLE, CHOOSER_FRONT, CHOOSER_WORTH,
	CHOOSER_TOUCHED, CHOOSER_FREE, CHOOSER_COST, CHOOSER_INDEX,
};

/* As strcmp: below 0 if a is better; *row, unless NULL, is the first that differs. Both were sorted in one list. */
int candidate_node_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row *row);

/* Moves the best n to the front, in order; the rest is unordered. */
void candidate_nodes_sort(struct candidate_node *list, unsigned count, unsigned n);

/* A number of nodes with a number of tasks each. */
struct chooser_share {
	uint32_t nodes, tasks;
};

/* Divides the tasks into even shares, larger ones first. False when there are more nodes than tasks. */
bool shares_divide(struct chooser_share share[2], uint32_t tasks, uint32_t nodes);

/*
 * Tasks divided unevenly, among nodes that hold some numbers of tasks and not others: the memory of four tasks may be
 * near their cores where that of three is not, with one core in each NUMA node. Initialise with the first three.
 */
struct chooser_division {
	uint32_t tasks, min_nodes, max_nodes;
	struct chooser_kind {		/* of nodes that hold the same numbers of tasks */
		uint64_t *holds;	/* a set of these numbers, as of cores (base/core_set.h) */
		uint64_t weight;
		uint32_t nodes;
		bool required;		/* one node, which must be used */
	} *kinds;
	size_t nkinds;
	struct chooser_part {
		unsigned kind;
		uint32_t tasks;
	} *parts;			/* found: of each node */
	uint32_t nparts;
};

/*
 * Adds a node that holds the numbers in holds[], a set of `tasks` + 1 members. Returns its kind; -1 when memory is
 * short.
 */
int chooser_division_add(struct chooser_division *d, const uint64_t *holds, uint64_t weight, bool required);

/*
 * Finds the fewest nodes that hold all tasks, each at least one; of kinds that weigh less first, and as evenly as these
 * allow. Returns 0; 1: there is no division; -1: not all were tried, because there are too many, or memory is short.
 */
int chooser_division_find(struct chooser_division *d);
void chooser_division_free(struct chooser_division *d);

struct chooser {
	/* The job. */
	uint32_t tasks, min_nodes, max_nodes;
	uint32_t required;		/* nodes that it names */
	uint32_t first, last;		/* numbers of nodes to try, in that order; then min_nodes */
	bool any_nodes;			/* then the fewest nodes that hold all tasks, up to max_nodes */
	bool fixed_cores;		/* each node can only take one number of cores (a path) */
	struct chooser_share *share;	/* two; set to the shares of the number of nodes tried last */

	/* The nodes, with indices below `nodes`. */
	unsigned nodes;
	struct candidate_node *list;		/* space for all */
	unsigned count;			/* set: candidates for the last share, the chosen ones first */
	void *user;
	/*
	 * Fills list with all nodes that can take so many tasks, with 0 as many as each holds, except those already
	 * chosen. Returns their number.
	 */
	unsigned (*find)(void *user, uint32_t tasks, const bool *chosen);
	/*
	 * The most tasks that a node can take, or 0, and the least; and the most on any node. Not called if first
	 * equals last.
	 */
	uint32_t (*range)(void *user, int node, uint32_t *least);
	uint32_t (*capacity)(void *user);
	/*
	 * For uneven divisions where even shares fail; NULL: none is tried. Adds the numbers up to `most` that a node
	 * can take to the empty set holds[]; *one becomes a candidate for the last of them. Returns how many
	 * numbers it tried, of which `tries` are allowed.
	 */
	uint32_t (*holds)(void *user, int node, uint32_t most, uint64_t *holds, struct candidate_node *one);
	uint32_t tries;
	bool cut;			/* set: not all divisions were tried, and none was found */
};

/* The nodes that were chosen. */
struct choice {
	struct candidate_node *list;
	unsigned count;
	bool *chosen;			/* by node */
	unsigned uneven;		/* nodes that hold some tasks, if a chooser_division divided them; else 0 */
};

/* Allocates it for so many nodes. 0, or -1 when memory is short; free with choice_free in either case. */
int choice_init(struct choice *out, unsigned nodes);
void choice_free(struct choice *out);
void choice_add(struct choice *out, const struct candidate_node *c);
void choice_clear(struct choice *out);

/*
 * Chooses by even shares of the tasks, for one number of nodes after another; if none fits and more nodes are allowed,
 * the fewest nodes that hold all tasks; then by any division. All required nodes are among them. False when there is no
 * such choice.
 */
bool chooser_run(struct chooser *c, struct choice *out);
