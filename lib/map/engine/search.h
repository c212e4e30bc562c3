/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SEARCH_H
#define TOPIARY_MAP_ENGINE_SEARCH_H

#include <stdbool.h>

#include "map/engine/candidates.h"
#include "map/engine/solve.h"

#define MAX_TRIALS 48

/* How much is tried. */
struct effort {
	const char *name;
	bool quick;			/* see struct problem */
	unsigned seeds;			/* candidates that take a seed get so many */
	unsigned few;			/* so many ranks and fewer: more seeds */
	unsigned polished;		/* so many of the cheapest candidates are polished */
	unsigned starts;		/* so many of those are improved */
	double share;			/* of the work */
};

/* A mapping on its way: how it began, and what was done to it. */
struct trial {
	const char *name;
	bool polished, improved;
	double cost, nic;
	unsigned *slot;
};

struct search {
	struct problem b;
	const struct effort *effort;
	struct trial trial[MAX_TRIALS];	/* slot of all of them in one piece, beginning with that of best */
	unsigned ntrials;
	struct trial best;
	double work, left;		/* arcs that may be looked at; that may still */
	unsigned turn;			/* of what takes a seed */
	unsigned idle;			/* bits: the steps of improve.c that brought nothing in the last round */
	double *load;
	struct mapping *out;
};

int search_no_memory(struct search *x);

/* Tell a trial's cost, and keep it where it is the best. */
void search_measure(struct search *x, struct trial *t);

#endif
