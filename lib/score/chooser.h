/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_CHOOSER_H
#define TOPIARY_SCORE_CHOOSER_H

#include "score/fit_cache.h"

/*
 * Which nodes a job gets, and how many tasks on each: the one choice of the select plugin and of the replay. What nodes
 * there are, and what they could take, is the caller's to say; there is no Slurm in here.
 */

/* A node that could take some of a job's tasks, and how well. */
struct candidate_node {
	int node;
	uint32_t tasks;
	unsigned cores;			/* so many cores, whatever the tasks need; 0: what they need */
	unsigned need_cores;		/* what was scored: cores, or what the tasks need */
	bool required;			/* the job names it */
	uint64_t weight;		/* the administrator's: the lighter node comes first whatever its shape */
	bool shares_cores;		/* tasks share cores, which they need not elsewhere */
	unsigned spare;			/* cores that a job of whole nodes gets and does not need */
	const struct score_cost *cost;	/* borrowed from the cache, as fit is */
	struct node_fit *fit;		/* for fit_cores; NULL: to be scored again */
};

/*
 * As strcmp: below 0 when a is the better. Required nodes come first, then lighter ones, those with more tasks, those
 * where no tasks share cores, those with fewer cores to spare, those of less cost, and those with the lower index.
 */
int candidate_node_compare(const struct candidate_node *a, const struct candidate_node *b);

/* Move the best n to the front, in order; the rest is in any order. */
void candidate_nodes_sort(struct candidate_node *list, unsigned count, unsigned n);

/* So many nodes with so many tasks each. */
struct share {
	uint32_t nodes, tasks;
};

/* Even shares of the tasks, the larger ones first. False when there are more nodes than tasks. */
bool shares_divide(struct share share[2], uint32_t tasks, uint32_t nodes);

struct chooser {
	/* The job. */
	uint32_t tasks, min_nodes, max_nodes;
	uint32_t first, last;		/* numbers of nodes to try, in that order; then min_nodes */
	bool any_nodes;			/* and then as few nodes as hold all tasks, up to max_nodes */
	bool fixed_cores;		/* each node gives one number of cores only (a path) */
	struct share *share;		/* two: set to those of the last number of nodes that was tried */

	/* The nodes, with indices below `nodes`. */
	unsigned nodes;
	struct candidate_node *list;		/* space for all */
	unsigned count;			/* set: candidates for the last share, the chosen ones first */
	void *user;
	/*
	 * Fill list with all nodes that could take so many tasks, with 0 as many as each holds, but for those already
	 * chosen; returns their number.
	 */
	unsigned (*find)(void *user, uint32_t tasks, const bool *chosen);
	/*
	 * The most tasks that a node could take, or 0, and the least; and the most on any node. Not called where first
	 * is last.
	 */
	uint32_t (*range)(void *user, int node, uint32_t *least);
	uint32_t (*capacity)(void *user);
};

/* The nodes that were chosen. */
struct choice {
	struct candidate_node *list;
	unsigned count;
	bool *chosen;			/* by node */
};

/* Space for so many nodes. 0, or -1 when memory is short; free with choice_free in any case. */
int choice_init(struct choice *out, unsigned nodes);
void choice_free(struct choice *out);
void choice_add(struct choice *out, const struct candidate_node *c);

/*
 * Choose by even shares of the tasks, for one number of nodes after another; where none of these fits and more nodes
 * will do, the fewest nodes that hold all tasks. False when there is no such choice.
 */
bool chooser_run(struct chooser *c, struct choice *out);

#endif
