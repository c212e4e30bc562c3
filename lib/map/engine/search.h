/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SEARCH_H
#define TOPIARY_MAP_ENGINE_SEARCH_H

#include <stdbool.h>

#include "map/engine/candidates.h"
#include "map/engine/solve.h"

#define MAX_TRIALS 48

/* The limits of an effort. */
struct search_effort {
	const char *name;
	bool quick;			/* see struct map_problem */
	unsigned seeds;			/* the number of seeds for candidates that use one */
	unsigned few;			/* more seeds for at most so many ranks */
	unsigned polished;		/* the number of cheapest candidates that are polished */
	unsigned starts;		/* the number of those that are improved */
	double share;			/* share of the work */
};

/* A mapping in progress: its origin, and the steps applied to it. */
struct search_trial {
	const char *name;
	bool polished, improved;
	double cost, nic;
	unsigned *slot;
};

struct search {
	struct map_problem b;
	const struct search_effort *effort;
	struct search_trial trial[MAX_TRIALS];	/* their slots are one allocation, beginning with that of best */
	unsigned ntrials;
	struct search_trial best;
	double work, left;		/* edge evaluations allowed; left */
	unsigned turn;			/* number of seeds drawn */
	unsigned idle;			/* bits: the steps of improve.c that gained nothing in the last round */
	double *load;
	struct mapping *out;
};

#endif
