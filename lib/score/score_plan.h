/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_PLAN_H
#define TOPIARY_SCORE_SCORE_PLAN_H

#include "score/score_tree.h"

/*
 * The least costs of choosing from a part, for every number that it can provide. Costs of parts add up and compare as
 * their sums do, so the optimum of two parts together is an optimal sum: each part can be examined by itself.
 *
 * Choices follow steps, outermost first: `count` domains of a cover, and in each of them the next step; the last step
 * chooses single cores. A job without a path has that step only.
 */
struct score_step {
	unsigned cover;
	unsigned count;
	unsigned cores;		/* of each one that is chosen */
};

struct score_plan {
	unsigned have;			/* how many there are */
	unsigned least, most;		/* how many may be chosen */
	struct score_cost *cost;	/* for least .. most */
	unsigned run;			/* its choice: cores of this part, */
	const struct score_plan *first, *second;	/* or of one plan and another, */
	unsigned each;			/* or, without a second, this many of the first for each */
};

/* Plans the choice of `steps` within one part. In the arena; NULL when memory is short. */
const struct score_plan *score_plan_make(const struct score_tree *t, unsigned part, const struct score_step *steps,
					 struct score_arena *arena);

/* Plans the choice of any number of all cores. */
const struct score_plan *score_plan_all(const struct score_tree *t, struct score_arena *arena);

/* The cost of n, without score_finish; NULL when they are not available. */
const struct score_cost *score_plan_cost(const struct score_plan *plan, unsigned n);

/* Sets the bits of the best n; among equal costs, as many as possible in the first half of the parts. */
void score_plan_mark(const struct score_tree *t, const struct score_plan *plan, unsigned n, uint64_t *chosen);

#endif
