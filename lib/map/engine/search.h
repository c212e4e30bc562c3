/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/engine/slots.h"
#include "map/engine/solve.h"
#include "map/engine/split.h"
#include "map/engine/traffic.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"

/* A problem, and the options of its starts. */
struct map_problem {
	const struct matrix *m;
	const struct places *p;
	const struct slots *s;
	unsigned seed;
	bool quick;		/* without Scotch's mapping, which takes most of the time */
	bool loose;		/* not the first start of its kind: it may differ */
	struct err *err;
};

/*
 * In the order of preference among mappings of equal cost. Candidates from CANDIDATE_SEEDED on are repeated with other
 * seeds.
 */
enum { CANDIDATE_BLOCK, CANDIDATE_CYCLIC, CANDIDATE_SCOTCH, CANDIDATE_SEEDED };

struct candidate {
	const char *name;
	unsigned needs;		/* minimum for which it is worth its time */
	unsigned takes;		/* work by edge and bisection level of the slots; a rank counts as a dozen edges */
	struct split_way way;	/* of split_map, for those from CANDIDATE_SEEDED on */
};

extern const struct candidate candidates[];
extern const unsigned ncandidates;

/* slot[m->ranks], at most one rank a slot; 0, or -1 with an error. */
int candidate_map(const struct candidate *c, const struct map_problem *b, unsigned *slot);
/* An estimate of its work, in edge evaluations or equivalent. */
unsigned long long candidate_work(const struct candidate *c, const struct map_problem *b);
bool candidate_is_worth(const struct candidate *c, const struct map_problem *b);

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
	struct traffic traffic;		/* if the matrix has messages */
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
	unsigned idle;			/* bits: the steps of search.c that gained nothing in the last round */
	double *load;
	struct traffic block;
	struct mapping *out;
};

/*
 * Improve the trials there are. Which start is best shows only after improvement, because the cheapest after polishing
 * is often not the best: several are improved a little, the cheapest of those further, and finally one alone, until the
 * work is used up. 0 or -1. Called by solve.c.
 */
int improve_trials(struct search *x);

/* Computes a trial's cost, and keeps it if it is the best: the first must be block. 0 or -1. Called by solve.c. */
int improve_measure(struct search *x, struct search_trial *t);
