/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SLOTS_H
#define TOPIARY_MAP_ENGINE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "map/matrix/matrix.h"
#include "map/engine/paths.h"
#include "map/places/places.h"

/* No rank is on the slot; a rank is on no slot. */
#define SLOT_NONE (~0u)

/*
 * The places in the order of a search: sorted by the tree, so that every domain is a range of slots, with distances in
 * a few instructions. A level of slots is one at which some of them part; the last level parts every slot from every
 * other.
 */
struct slot_level {
	unsigned n;
	unsigned *first;		/* first[n + 1]: domain d has the slots first[d] .. first[d + 1] - 1 */
	unsigned *of;			/* the domain of each slot */
	bool is_shaped;			/* the distance of two domains does not depend on the slots in them */
	uint64_t *shape;		/* then, of each domain: domains with the same number are equal inside */
	bool is_cut;			/* an intermediate step to the next level: halves of a torus */
	double typical;			/* average distance of a pair that it parts */
};

/*
 * Where a slot is. code is its path as bits, the upper ones for the upper levels: the highest bit in which two differ
 * names the level. cost[bit] is what such a pair costs; where that is below 0 the table tells, whose rows are domains
 * of one level.
 */
struct slot_place {
	uint64_t code;
	const double *cost;
	unsigned row, slot;
};

struct slots {
	unsigned n, hosts;
	unsigned *place;		/* of each slot, index into the places */
	unsigned *host;			/* of each slot */
	struct slot_level level[PATHS_LEVELS + 1];
	unsigned nlevels;
	struct slot_place *spot;	/* of each slot */
	const uint64_t *shape;		/* of each slot: who is on it may go to those of the same alone; NULL: to all */
	const struct slot_level *cells;	/* domains whose slots are alike: the narrowest, as a rule */
	double *costs;
	double *table;
	unsigned rows;
};

/* NULL with an error: memory, or a tree of more than 63 bits. */
struct slots *slots_new(const struct places *p, struct err *e);
void slots_free(struct slots *s);

static inline double spots_distance(const struct slots *s, const struct slot_place *a, const struct slot_place *b)
{
	double cost = a->cost[63 - __builtin_clzll((a->code ^ b->code) | 1)];

	return cost >= 0 ? cost : s->table[(size_t) a->row * s->rows + b->row];
}

static inline double slots_distance(const struct slots *s, unsigned a, unsigned b)
{
	return spots_distance(s, &s->spot[a], &s->spot[b]);
}

/* May who is on one of two slots go to the other? */
static inline bool slots_alike(const struct slots *s, unsigned a, unsigned b)
{
	return !s->shape || s->shape[a] == s->shape[b];
}

/* What a rank pays on a slot, the others staying where slot[] has them; those on SLOT_NONE do not count. */
static inline double slots_rank_cost(const struct matrix *m, const struct slots *s, const unsigned *slot, unsigned rank,
				     unsigned at)
{
	double cost = 0;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		if (slot[m->adj[i]] != SLOT_NONE)
			cost += m->weight[i] * slots_distance(s, at, slot[m->adj[i]]);
	return cost;
}

/* The sum over pairs of weight times distance. */
double slots_cost(const struct matrix *m, const struct slots *s, const unsigned *slot);

/* What the node exchanges with others that does so most; load[hosts] is for it to write to. */
double slots_busiest(const struct matrix *m, const struct slots *s, const unsigned *slot, double *load);

#endif
