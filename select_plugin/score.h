/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SCORE_H
#define TOPIARY_SELECT_SCORE_H

#include <stdbool.h>

#include "topo/shape.h"

/*
 * Which cores of a node a job should have, and how good a choice that is. Source: Goglin et al. 2017, section IV-B (cut along
 * hardware boundaries, the smallest domain that holds the job). No Slurm in here.
 *
 * Costs are compared row by row, and within a row from the node down to the L2 cache; the first difference decides:
 *
 *	row	counts, over the domains that the cores lie in	prefers
 *	beyond	domains of the wanted level but one		what keeps within one domain of that level
 *	touched	domains						the smallest domain that holds the cores, then the fewest
 *	open	domains with free cores left over		an exact fit before a larger domain
 *	broken	domains wholly free before and no more		one already broken before an intact one
 *	left	free cores left over				the tightest
 *
 * What is equal in all goes to the lowest index. So that nodes of different shapes compare, a level that a node does not have
 * counts as the level above it, for hwloc leaves out what would be the same; but an L2 or L3 that it does not have counts, in
 * "touched", as one a core or as the L2: no two cores share it.
 */
enum score_row { SCORE_TOUCHED, SCORE_OPEN, SCORE_BROKEN, SCORE_LEFT, SCORE_ROWS };

struct score_cost {
	unsigned beyond;
	unsigned row[SCORE_ROWS][LEVEL_CORE];
};

struct score_need {
	unsigned cores;		/* how many */
	enum level within;	/* the level not to be cut if that can be; LEVEL_CORE when none is named */
};

/*
 * Choose need->cores of the cores whose free[] is set: chosen[] of shape->cores is set to just those. 0, or -1 with both results
 * untouched when fewer are free, none is wanted or memory is short.
 */
int score_pick(const struct shape *shape, const bool *free, const struct score_need *need, bool *chosen,
	       struct score_cost *cost);

/* As strcmp: below 0 when a is the better. */
int score_compare(const struct score_cost *a, const struct score_cost *b);

#endif
