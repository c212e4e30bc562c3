/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"

enum { PATHS_CUTS = 16, PATHS_LEVELS = PLACES_LEVELS + PATHS_CUTS };

/* Sorts order[n], 0 .. n-1, by key[n] ascending; of equal keys the lower number first. */
void engine_order(const double *key, unsigned n, unsigned *order);

/* No rank on the slot; a rank without a slot. */
#define SLOT_NONE (~0u)

/*
 * The places in search order: sorted by the tree, so that every domain is a range of slots, with distances in a few
 * instructions. Each level of slots separates some of them; the last one separates every slot from every other.
 */
struct slot_level {
	unsigned n;
	unsigned *first;		/* first[n + 1]: domain d has the slots first[d] .. first[d + 1] - 1 */
	unsigned *of;			/* by slot: its domain */
	bool is_shaped;			/* the distance of two domains does not depend on the slots in them */
	uint64_t *shape;		/* if so, by domain: domains with the same number are equal inside */
	bool is_cut;			/* an intermediate step to the next level: halves of a torus */
	double typical;			/* average distance of a pair separated here */
};

/*
 * The position of a slot. code is its path as bits, upper levels in upper bits: the highest bit in which two differ is
 * the level. cost[bit] is the cost of such a pair; if negative, it is in the table, whose rows are the domains of one
 * level.
 */
struct slot_place {
	uint64_t code;
	const double *cost;
	unsigned row, slot;
};

/* The slots first .. first+count-1. */
struct slot_range {
	unsigned first, count;
};

struct slots {
	unsigned n, hosts;
	unsigned *place;		/* by slot: index into the places */
	unsigned *host;			/* by slot */
	struct slot_level level[PATHS_LEVELS + 1];
	unsigned nlevels;
	struct slot_place *spot;	/* by slot */
	const uint64_t *shape;		/* by slot: ranks may move only between slots of the same shape; NULL: any */
	const struct slot_level *cells;	/* domains of equivalent slots: usually the narrowest */
	double *costs;
	double *table;
	unsigned rows;
};

/* NULL with an error: memory, or a tree of more than 63 bits. */
struct slots *slots_new(const struct places *p, struct err *e);
void slots_free(struct slots *s);

static inline double slot_place_distance(const struct slots *s, const struct slot_place *a, const struct slot_place *b)
{
	double cost = a->cost[63 - __builtin_clzll((a->code ^ b->code) | 1)];

	return cost >= 0 ? cost : s->table[(size_t) a->row * s->rows + b->row];
}

static inline double slots_distance(const struct slots *s, unsigned a, unsigned b)
{
	return slot_place_distance(s, &s->spot[a], &s->spot[b]);
}

/* Whether a rank may move from one of two slots to the other. */
static inline bool slots_alike(const struct slots *s, unsigned a, unsigned b)
{
	return !s->shape || s->shape[a] == s->shape[b];
}

/* The cost of a rank on a slot with the others as in slot[]; those on SLOT_NONE do not count. */
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

/* The external communication of the node that has most; load[hosts] is scratch space. */
double slots_busiest(const struct matrix *m, const struct slots *s, const unsigned *slot, double *load);
