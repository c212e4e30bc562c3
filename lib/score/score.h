/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/core_set.h"
#include "score/request.h"
#include "shape/shape.h"

/*
 * The choice of a node's cores for a job, and the cost of it. Source: Goglin et al. 2017, section IV-B (cut along
 * hardware boundaries, the smallest domain that holds the job). Independent of Slurm.
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
 * At each level every core counts in exactly one domain. To compare nodes of different shapes, a level that a node or a
 * part of it lacks counts as the next level out, because hwloc omits levels that add nothing. But a missing L2 counts
 * as one for each core, and a missing L3 as the L2: no two cores share it (in "beyond", a cache that the whole node
 * lacks counts as the next level out). If domains of one level are nested, as NUMA nodes can be, the inner ones count.
 *
 * The pieces of a domain are the least number of tasks to which its chosen cores can belong. The number of cuts is the
 * sum of the pieces less the number of tasks, also for tasks larger than the domain: so that nodes compare, a task in
 * two NUMA nodes is cut on any node. Tasks of which a core holds a whole number are never cut.
 *
 * The choice is the optimum, not a greedy one: no other set of as many free cores has a lower cost, hence none touches
 * fewer domains of one level and no more of the others.
 */
enum score_row { SCORE_BEYOND, SCORE_CUTS, SCORE_TOUCHED, SCORE_OPEN, SCORE_BROKEN, SCORE_LEFT, SCORE_ROWS };

#define SCORE_LEVELS (LEVEL_CORE - LEVEL_PACKAGE)
#define SCORE_WORDS 6
#define SCORE_MAX_CORES 65535u	/* the limit of a count; larger shapes are refused */

/* Counts of 16 bits, the most significant first, so that costs compare as numbers do. */
struct score_cost {
	uint64_t word[SCORE_WORDS];
};

/* As strcmp: below 0 if a is better. */
int score_compare(const struct score_cost *a, const struct score_cost *b);

/* The same, and the first row and level that differ: untouched if none does. SCORE_BEYOND is of LEVEL_NODE. */
int score_differ(const struct score_cost *a, const struct score_cost *b, enum score_row *row, enum level *level);

/*
 * One count. The level is ignored for SCORE_BEYOND, is NUMA or L3 for SCORE_CUTS, and may be LEVEL_NODE for SCORE_LEFT.
 * 0 for what is not counted, such as cuts of tasks of one core.
 */
unsigned score_count(const struct score_cost *c, enum score_row row, enum level level);

/* Of the cores of one domain of several cores, first .. first+cores-1, at most so many are chosen (numa_memory.h). */
struct score_limit {
	unsigned first, cores, most;
};

/*
 * The size of a task that shares a core with the next one: so many CPUs, of which each core has so many. On two-way SMT
 * tasks of 7 CPUs have 3.5 cores each: two have 7 together, though one alone needs 4. {0}: whole cores.
 */
struct score_task {
	unsigned cpus, core_cpus;
};

/* What a job needs on one node. */
struct score_need {
	unsigned cores;		/* how many; for a path its own number, for spread tasks * task_cores */
	unsigned task_cores;	/* cores of each task alone, at least 1 */
	struct score_task task;
	enum fit fit;		/* FIT_PREFER, FIT_REQUIRE or FIT_SPREAD */
	enum level level;	/* LEVEL_NODE: none */
	const struct request_path *path;	/* NULL or without steps: none. Only with FIT_REQUIRE */
	const struct score_limit *limits;	/* nlimits of them, ascending and disjoint */
	unsigned nlimits;
};

/* The task in CPUs, {task_cores, 1} for whole cores; how many tasks the cores have room for, and need for so many. */
static inline struct score_task score_task_of(const struct score_need *need)
{
	unsigned whole = need->task_cores ? need->task_cores : 1;

	return need->task.cpus ? need->task : (struct score_task){ whole, 1 };
}

static inline unsigned score_task_room(struct score_task t, unsigned cores)
{
	return (uint64_t) cores * t.core_cpus / t.cpus;
}

static inline unsigned score_task_span(struct score_task t, unsigned tasks)
{
	return ((uint64_t) tasks * t.cpus + t.core_cpus - 1) / t.core_cpus;
}

/* Keeps of a set of cores those of a kind. */
void score_keep_kind(const struct shape *shape, unsigned kind, uint64_t *cores);

/*
 * Chooses need->cores of the cores in free_cores[] into chosen[], both of core_set_words(shape->cores) words.
 *
 * FIT_PREFER: the lowest cost. FIT_REQUIRE: the lowest cost with "beyond" 0 that, with a path, follows it exactly: each
 * domain of the path provides as many cores as the next steps state, and no core is from elsewhere. In a path, too, a
 * missing package, die or NUMA node counts as the next level out; a cache that the whole node lacks is not available.
 *
 * FIT_SPREAD: no task is cut at the level, and as few as possible share a domain of it. Tasks are assigned in rounds,
 * in each round one more to every domain with room for a whole one. In the last round, which may not reach all,
 * domains with more free cores come before those with fewer, so that each task has as much memory and cache bandwidth
 * as possible; of equal ones those in a package, die, NUMA node or L3, in this order, with fewer of the tasks so far;
 * then the first. Limits of a domain around several of these are met by taking from the largest of them. Within a
 * domain, the cores with the lowest cost are chosen. SCORE_BEYOND of the cost is the most tasks in one domain less
 * one, SCORE_LEFT counts the cores that are not free in the chosen domains, and the other rows are counted as always.
 * Tasks larger than the free cores of any domain of the level are not possible.
 *
 * Returns 0; 1 when these cores are not available, or the need is inconsistent (a path of other than need->cores cores,
 * spread tasks of which one is not whole); -1 when memory is short or the shape has too many cores. chosen and cost are
 * untouched unless 0; chosen may be NULL.
 */
int score_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen,
	       struct score_cost *cost);

/*
 * The costs of all numbers of cores at once, for repeated queries of the same node (FIT_PREFER, and FIT_REQUIRE without
 * a path: then the cost must have "beyond" 0), for the need's tasks and level. NULL when memory is short or the shape
 * has too many cores. Does not own its arguments.
 */
struct score_table;
struct score_table *score_table_new(const struct shape *shape, const uint64_t *free_cores,
				    const struct score_need *need);
void score_table_free(struct score_table *t);
size_t score_table_bytes(const struct score_table *t);

/* The cost of the k cores that score_pick would choose; NULL when k is 0 or fewer are free. Borrowed. */
const struct score_cost *score_table_cost(const struct score_table *t, unsigned k);

/* The largest number of cores that lie within one domain of the need's level. */
unsigned score_table_within(const struct score_table *t);
