/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_PLAN_H
#define TOPIARY_SCORE_SCORE_PLAN_H

#include "score/score_kind.h"

/*
 * The least costs of taking from a part, for every number that may be taken from it. Costs of parts add up and compare
 * as their sums do, so the best of two parts together is the best of the sums: nothing is lost by looking at each part
 * by itself.
 *
 * What is taken follows steps, outermost first: `count` domains of a cover, and in each of them what the next step
 * says; the last takes single cores. A job that asks for no path has that one step only.
 */
struct score_step {
	unsigned cover;
	unsigned count;
	unsigned cores;		/* of each that is taken */
};

struct score_plan {
	unsigned have;			/* how many there are to take */
	unsigned least, most;		/* how many may be taken of them */
	struct score_cost *cost;	/* for least .. most */
	unsigned run;			/* what it takes: cores of this part, */
	const struct score_plan *first, *second;	/* or of one plan and another, */
	unsigned each;			/* or, without a second, this many of the first for each one */
};

/* Plan to take what `steps` say within one part. In the arena; NULL when memory is short. */
const struct score_plan *score_plan_make(const struct score_tree *t, unsigned part, const struct score_step *steps,
					 struct score_arena *arena);

/* The plan to take any number of all cores. */
const struct score_plan *score_plan_all(const struct score_tree *t, struct score_arena *arena);

/* The cost of n, without score_finish; NULL when they cannot be had. */
const struct score_cost *score_plan_cost(const struct score_plan *plan, unsigned n);

/* Set the bits of the n best; of equals, as many as can be in the first half of the parts. */
void score_plan_mark(const struct score_tree *t, const struct score_plan *plan, unsigned n, uint64_t *chosen);

#endif
