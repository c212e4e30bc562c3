/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_TREE_H
#define TOPIARY_SCORE_SCORE_TREE_H

#include "score/score_arena.h"
#include "score/score_cost.h"

/*
 * A shape with its free cores, in the form over which costs are counted: only the parts with free cores.
 *
 * For each level the counted domains are a cover: every core is in exactly one of them, so that counts of parts add up.
 * A cover consists of the shape's domains of the level and, where it has none, of the substitutes described in score.h.
 * Covers are named by their level; COVER_WITHIN_* are those of "beyond", where a missing cache counts as the level
 * above.
 */
enum { COVER_WITHIN_L3 = LEVEL_COUNT, COVER_WITHIN_L2, COVER_COUNT };

#define BIT(cover) (1u << (cover))

struct score_kind;

struct score_part {
	unsigned first, cores;	/* of a domain; of a run, from its first free core to its last */
	unsigned have;		/* of these, free */
	unsigned can;		/* of these, as many as the limits allow */
	unsigned kids;		/* parts directly below; 0: a run of single cores */
	unsigned next;		/* index of the part after this one and its contents */
	int parent;		/* -1 for the node */
	unsigned counts;	/* BIT of each cover that it belongs to; for a run, of each that its cores do */
	unsigned within;	/* and of each cover that it or a part around it belongs to */
	const struct score_kind *kind;
};

struct score_tree {
	const struct shape *shape;
	const uint64_t *free_cores;
	unsigned task_cores;	/* for tasks that spread: whole ones */
	struct score_task task;
	bool cuts;		/* tasks can be cut: a core does not hold a whole number of them */
	unsigned have;		/* free cores */
	bool limited;		/* some part has fewer that it can choose than free ones */
	unsigned wanted;	/* the cover that "beyond" counts; LEVEL_NODE: none */
	unsigned levels;	/* BIT of each level of the shape */
	struct score_part *parts;	/* in preorder; the node is the first, unless nothing is free */
	unsigned nparts;
	struct score_kind *kinds;	/* of the parts, each once */
};

/*
 * Allocated in the arena, which the caller frees in either case; borrows shape and free_cores. 0, or -1 when memory is
 * short.
 */
int score_tree_init(struct score_tree *t, const struct shape *shape, const uint64_t *free_cores,
		    const struct score_need *need, enum level level, struct score_arena *arena);

/* The least number of tasks to which so many cores, at least one, can belong. */
static inline unsigned score_pieces(const struct score_tree *t, unsigned cores)
{
	return ((uint64_t) cores * t->task.core_cpus - 1) / t->task.cpus + 1;
}

/* Sets what each part can choose within the limits of the need; without this call, all that is free. */
void score_tree_limit(struct score_tree *t, const struct score_need *need);

/*
 * before[c]: how many of the cores below c are in the set, for c up to the number of cores. NULL when memory is short.
 */
uint16_t *score_count_before(const uint64_t *set, unsigned cores, struct score_arena *arena);

#endif
