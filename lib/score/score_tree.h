/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_TREE_H
#define TOPIARY_SCORE_SCORE_TREE_H

#include "score/score_arena.h"
#include "score/score_cost.h"

/*
 * A shape with its free cores, as costs are counted over it: only the parts in which something is free.
 *
 * For each level the counted domains are a cover: every core lies in just one of them, so that counts of parts add up.
 * A cover is what the shape has of the level, and where it has nothing, the stand-ins that score.h tells of. Covers are
 * named by their level; COVER_WITHIN_* are those of "beyond", where a cache that is not there counts as the level
 * above.
 */
enum { COVER_WITHIN_L3 = LEVEL_COUNT, COVER_WITHIN_L2, COVER_COUNT };

#define BIT(cover) (1u << (cover))

struct score_kind;

struct score_part {
	unsigned first, cores;	/* as of a domain; of a run, from its first free core to its last */
	unsigned have;		/* of these, free */
	unsigned kids;		/* parts right below; 0: this is a run of single cores */
	unsigned next;		/* index of the part after this one and all in it */
	int parent;		/* -1 for the node */
	unsigned counts;	/* BIT of each cover that this is of; of a run, that each of its cores is of */
	unsigned within;	/* and of each that has it or one around it */
	const struct score_kind *kind;
};

struct score_tree {
	const struct shape *shape;
	const uint64_t *free_cores;
	unsigned task_cores;
	unsigned have;		/* free cores */
	unsigned wanted;	/* the cover that "beyond" counts; LEVEL_NODE: none */
	unsigned levels;	/* BIT of each level that the shape has */
	struct score_part *parts;	/* in preorder; the node is the first, unless nothing is free */
	unsigned nparts;
	struct score_kind *kinds;	/* of the parts, each once */
};

/*
 * Lives as long as the arena, which the caller frees in any case, and borrows shape and free_cores. 0, or -1 when
 * memory is short.
 */
int score_tree_init(struct score_tree *t, const struct shape *shape, const uint64_t *free_cores, unsigned task_cores,
		    enum level level, struct score_arena *arena);

/* before[c]: how many of the cores below c are in the set, for c up to all of them. NULL when memory is short. */
uint16_t *score_count_before(const uint64_t *set, unsigned cores, struct score_arena *arena);

#endif
