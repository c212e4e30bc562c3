/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_CANDIDATES_H
#define TOPIARY_MAP_ENGINE_CANDIDATES_H

#include <stdbool.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"
#include "map/engine/slots.h"
#include "map/engine/split.h"

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
	int (*map)(const struct map_problem *b, unsigned *slot);	/* NULL: split_map, in this way */
	unsigned needs;		/* minimum for which it is worth its time */
	unsigned takes;		/* work by edge and bisection level of the slots; a rank counts as a dozen edges */
	struct split_way way;
};

extern const struct candidate candidates[];
extern const unsigned ncandidates;

/* slot[m->ranks], at most one rank a slot; 0, or -1 with an error. */
int candidate_map(const struct candidate *c, const struct map_problem *b, unsigned *slot);
/* An estimate of its work, in edge evaluations or equivalent. */
unsigned long long candidate_work(const struct candidate *c, const struct map_problem *b);
bool candidate_is_worth(const struct candidate *c, const struct map_problem *b);

#endif
