/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_MAPPING_STATE_H
#define TOPIARY_MAP_ENGINE_MAPPING_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/*
 * A mapping while a search changes it, with the rank-by-domain cost table: what each rank would cost in each cell, all
 * others unmoved. A cell is a set of slots of one domain that are equal, or treated as equal. So a move is evaluated
 * without reading the matrix; each move updates a row for each partner. For anneal.c and swaps.c.
 */
struct mapping_state {
	const struct matrix *m;
	const struct slots *s;
	const struct slot_level *cells;
	unsigned *at;			/* by rank: its slot */
	unsigned *rank;			/* on each slot, or SLOT_NONE */
	double *between;		/* between[cell * n + cell]: on the diagonal, between its first two slots */
	double *cost;			/* cost[rank * n + cell], n = cells->n */
	double *change;			/* by cell, for a move: scratch space */
	unsigned long long work;	/* edge evaluations so far, or equivalent work */
};

/* Whether the table is small enough to be worth its updates. */
bool mapping_state_is_worth(const struct matrix *m, const struct slot_level *cells);

/* At most one rank a slot. 0, or -1 when memory is short. mapping_state_free may be called in either case. */
int mapping_state_init(struct mapping_state *t, const struct matrix *m, const struct slots *s,
		       const struct slot_level *cells, const unsigned *slot);
void mapping_state_free(struct mapping_state *t);

/* What the rank on a slot would cost more on another, all others unmoved. */
static inline double mapping_state_costs_more(const struct mapping_state *t, unsigned from, unsigned to)
{
	unsigned rank = t->rank[from];
	const double *cost = rank == SLOT_NONE ? NULL : t->cost + (size_t) rank * t->cells->n;

	return cost ? cost[t->cells->of[to]] - cost[t->cells->of[from]] : 0;
}

/* Exchange the ranks of two slots. */
void mapping_state_swap(struct mapping_state *t, unsigned a, unsigned b);

/* The change in cost of that. A change of `limit` or more may be returned as any number of at least limit. */
double mapping_state_change(struct mapping_state *t, unsigned a, unsigned b, double limit);

#endif
