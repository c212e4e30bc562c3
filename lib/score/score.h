/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_H
#define TOPIARY_SCORE_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/core_set.h"
#include "score/request.h"
#include "shape/shape.h"

/*
 * Which cores of a node a job should have, and how good a choice that is. Source: Goglin et al. 2017, section IV-B (cut
 * along hardware boundaries, the smallest domain that holds the job). No Slurm in here.
 *
 * Sets of cores are as in base/core_set.h.
 *
 * Costs are compared row by row, and within a row from the package down to the L2 cache; the first difference decides:
 *
 *	row	counts, over the domains of the cores	prefers
 *	beyond	domains of the wanted level less one	cores within one domain of that level
 *	cuts	cuts through tasks of several cores	whole tasks in NUMA nodes and L3 caches that they fit into
 *	touched	domains					the smallest domain that holds the cores, then the fewest
 *	open	domains that are not the job's alone	an exact fit, a domain of just that size
 *	broken	domains that were entirely free		a broken domain before an intact one
 *	left	cores left free, also on the node	the tightest fit
 *
 * Ties go to the lowest cores.
 *
 * At each level every core counts in just one domain. So that nodes of different shapes compare, a level that a node,
 * or a part of it, does not have counts as the level above it, for hwloc leaves out what would be the same; but an L2
 * or L3 that it does not have counts as one a core or as the L2: no two cores share it (in "beyond", a cache that the
 * whole node lacks counts as the level above it). Of domains of one level within each other, as NUMA nodes can be, the
 * inner ones count.
 *
 * A domain's pieces are the least number of tasks that its cores can be shared out to; all pieces less all tasks is how
 * often tasks are cut, be it that they are larger than the domain: so that nodes compare, what lies in two NUMA nodes
 * is cut on either.
 *
 * The choice is the least of all that can be made, not a greedy one: no other set of as many free cores has a lesser
 * cost, and so none touches fewer domains of one level and no more of the others.
 */
enum score_row { SCORE_BEYOND, SCORE_CUTS, SCORE_TOUCHED, SCORE_OPEN, SCORE_BROKEN, SCORE_LEFT, SCORE_ROWS };

#define SCORE_LEVELS (LEVEL_CORE - LEVEL_PACKAGE)
#define SCORE_WORDS 6
#define SCORE_MAX_CORES 65535u	/* what a count can hold; a larger shape is refused */

/* Counts of 16 bits, the first to decide in the highest bits, so that costs compare as numbers do. */
struct score_cost {
	uint64_t word[SCORE_WORDS];
};

/* As strcmp: below 0 when a is the better. */
int score_compare(const struct score_cost *a, const struct score_cost *b);

/*
 * The same, and where the two differ first: row and level are untouched when they do not. SCORE_BEYOND is of
 * LEVEL_NODE.
 */
int score_differ(const struct score_cost *a, const struct score_cost *b, enum score_row *row, enum level *level);

/*
 * One count; the level matters not for SCORE_BEYOND, is NUMA or L3 for SCORE_CUTS, and may be LEVEL_NODE for
 * SCORE_LEFT. 0 for what is not counted, as cuts are where all tasks have one core.
 */
unsigned score_count(const struct score_cost *c, enum score_row row, enum level level);

/* What a job wants of one node. */
struct score_need {
	unsigned cores;		/* how many; of a path its own number, of spread tasks * task_cores */
	unsigned task_cores;	/* cores of each task, at least 1: tasks of one core are never cut */
	enum fit fit;		/* FIT_PREFER, FIT_REQUIRE or FIT_SPREAD */
	enum level level;	/* LEVEL_NODE when none is named */
	const struct request_path *path;	/* NULL or without steps: none. With FIT_REQUIRE only */
};

/*
 * Choose need->cores of the cores in free_cores[] into chosen[], both of core_set_words(shape->cores) words.
 *
 * FIT_PREFER: the least cost. FIT_REQUIRE: the least cost of those with "beyond" 0 that are, when there is a path, just
 * as it says: each domain of the path gives as many cores as the next steps say, and no core is from elsewhere. In a
 * path too, a package, die or NUMA node that is not there counts as the level above it; a cache that the whole node
 * lacks cannot be had.
 *
 * FIT_SPREAD: no task is cut at the level, and as few as possible share a domain of it: tasks go round by round, in
 * each round one more to every domain with room for a whole one. In the last round, which may not reach all, domains
 * with more free cores go before those with fewer, so that each task has the memory and cache bandwidth of as much as
 * can be; of equal ones those in a package, die, NUMA node or L3, in this order, with fewer of the tasks so far; then
 * the first. Within a domain, the cores are those of the least cost. SCORE_BEYOND of the cost is the most tasks in one
 * domain but one, SCORE_LEFT counts the cores that are not free in the domains taken, and the rest is counted as ever.
 * Tasks larger than what is free in any domain of the level cannot be had.
 *
 * 0; 1 when these cores cannot be had, or what is asked does not add up (a path of other than need->cores cores, spread
 * tasks of which one is not whole); -1 when memory is short or the shape has too many cores. chosen and cost are
 * untouched unless 0; chosen may be NULL.
 */
int score_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen,
	       struct score_cost *cost);

/*
 * The costs of all numbers of cores at once, for whoever asks the same node again and again (FIT_PREFER, and
 * FIT_REQUIRE without a path: there, the cost is to have "beyond" 0). NULL when memory is short or the shape has too
 * many cores. Owns nothing of its arguments.
 */
struct score_table;
struct score_table *score_table_new(const struct shape *shape, const uint64_t *free_cores, unsigned task_cores,
				    enum level level);
void score_table_free(struct score_table *t);
size_t score_table_bytes(const struct score_table *t);

/* The cost of k cores, what score_pick would choose; NULL when k is 0 or fewer are free. Borrowed. */
const struct score_cost *score_table_cost(const struct score_table *t, unsigned k);

#endif
