/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_CANDIDATES_H
#define TOPIARY_MAP_ENGINE_CANDIDATES_H

#include <stdbool.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"
#include "map/engine/slots.h"

/* A problem, and what a search begins with. */
struct problem {
	const struct matrix *m;
	const struct places *p;
	const struct slots *s;
	unsigned seed;
	bool quick;		/* Scotch is not asked for a mapping, which takes most of the time */
	bool loose;		/* not the first of its kind: it may begin elsewhere */
	struct err *err;
};

/*
 * In the order of preference among mappings of one cost. Those from CANDIDATE_SEEDED on are had again with
 * another seed. map: slot[m->ranks], at most one rank a slot; 0 or -1.
 */
enum { CANDIDATE_BLOCK, CANDIDATE_CYCLIC, CANDIDATE_SCOTCH, CANDIDATE_SEEDED };

struct candidate {
	const char *name;
	int (*map)(const struct problem *b, unsigned *slot);
	unsigned needs;		/* that it be worth it */
	unsigned takes;		/* for each arc and each level of halves of the slots; a rank is as a dozen arcs */
};

extern const struct candidate candidates[];
extern const unsigned ncandidates;

/* About so much work, in edge evaluations or what takes as long. */
unsigned long long candidate_work(const struct candidate *c, const struct problem *b);
bool candidate_is_worth(const struct candidate *c, const struct problem *b);

#endif
