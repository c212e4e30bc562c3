/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_KIND_H
#define TOPIARY_SCORE_SCORE_KIND_H

#include "score/score_tree.h"

/* The costs of parts of the same covers, without what is in them. */
struct score_kind {
	struct score_kind *next;
	unsigned counts;
	struct score_cost all;		/* when all of it is allocated */
	struct score_cost some;		/* when a part of it is, */
	struct score_cost intact;	/* of a domain that was entirely free */
	struct score_cost left;		/* additional for each core left over */
	struct score_cost piece;	/* additional for each piece of a task */
};

/* Sets the kind of every part of an otherwise complete tree. 0, or -1 when memory is short. */
int score_kinds_set(struct score_tree *t, struct score_arena *arena);

/* The cost of a domain itself, when some of its cores are chosen and `left` count as left over. */
static inline void score_domain_add(const struct score_tree *t, const struct score_part *part, unsigned taken,
				    unsigned left, struct score_cost *sum)
{
	const struct score_kind *kind = part->kind;

	if (!taken)
		return;
	cost_add(sum, taken == part->cores ? &kind->all : part->have < part->cores ? &kind->some : &kind->intact);
	if (left)
		cost_add_times(sum, &kind->left, left);
	if (t->cuts)
		cost_add_times(sum, &kind->piece, score_pieces(t, taken));
}

/* The cost of so many cores of a run: each is the only core of its domains. */
static inline void score_run_add(const struct score_tree *t, const struct score_part *part, unsigned taken,
				 struct score_cost *sum)
{
	cost_add_times(sum, &part->kind->all, taken);
	if (t->cuts)
		cost_add_times(sum, &part->kind->piece, taken * score_pieces(t, 1));
}

/* Converts the sum over all parts to the cost of k cores. */
void score_finish(const struct score_tree *t, unsigned k, struct score_cost *cost);

#endif
