/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_MAPPING_STATE_H
#define TOPIARY_MAP_ENGINE_MAPPING_STATE_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"
#include "map/engine/domain_costs.h"

/* A mapping and its costs, kept up to date while a search changes it. For anneal.c, node_anneal.c and swaps.c. */
struct mapping_state {
	const struct matrix *m;
	const struct slots *s;
	struct slot_place *at;		/* by rank */
	double *pays;			/* by rank: its cost on its slot */
	unsigned *rank;			/* on each slot, or SLOT_NONE */
	struct domain_costs costs;	/* no cells: not used */
	unsigned long long work;	/* edge evaluations so far */
};

/*
 * Uses the cost table by cell where it is worth its size (domain_costs.h): slots of a cell then count as equal. At most
 * one rank a slot. 0, or -1 when memory is short. mapping_state_free may be called in either case.
 */
int mapping_state_init(struct mapping_state *t, const struct matrix *m, const struct slots *s,
		       const struct slot_level *cells, const unsigned *slot);
void mapping_state_free(struct mapping_state *t);

/*
 * The change in cost of the rank on a slot if it moved to another, all others unmoved; from the table, which must be in
 * use.
 */
static inline double mapping_state_pays_more(const struct mapping_state *t, unsigned from, unsigned to)
{
	unsigned rank = t->rank[from];

	return rank == SLOT_NONE ? 0 : domain_costs_pays(&t->costs, rank, to) - t->pays[rank];
}

/* The slot of each rank. */
void mapping_state_slots(const struct mapping_state *t, unsigned *slot);

/* Exchange the ranks of two disjoint ranges of one length, slot by slot; the change in cost of that. */
void mapping_state_exchange(struct mapping_state *t, struct slot_range a, struct slot_range b);
double mapping_state_change(struct mapping_state *t, struct slot_range a, struct slot_range b);

/* The same for two slots. A change of `limit` or more may be returned as any number of at least limit. */
void mapping_state_swap(struct mapping_state *t, unsigned a, unsigned b);
double mapping_state_swap_change(struct mapping_state *t, unsigned a, unsigned b, double limit);

#endif
