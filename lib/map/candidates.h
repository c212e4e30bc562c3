/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_CANDIDATES_H
#define TOPIARY_MAP_CANDIDATES_H

#include <stdbool.h>

#include "base/err.h"
#include "map/matrix.h"
#include "map/places.h"
#include "map/slots.h"

/* A problem, and what a search begins with. */
struct problem {
	const struct matrix *m;
	const struct places *p;
	const struct slots *s;
	unsigned seed;
	struct err *err;
};

/*
 * In the order of preference among mappings of one cost. Those before CANDIDATE_SEEDED need no luck; the others may be had again with
 * another seed. map: slot[m->ranks], at most one rank a slot; 0 or -1.
 */
enum { CANDIDATE_BLOCK, CANDIDATE_CYCLIC, CANDIDATE_SEEDED, CANDIDATE_SCOTCH = CANDIDATE_SEEDED };

struct candidate {
	const char *name;
	int (*map)(const struct problem *b, unsigned *slot);
	bool (*is_worth)(const struct problem *b);	/* NULL: always */
};

extern const struct candidate candidates[];
extern const unsigned ncandidates;

#endif
