/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SEATS_H
#define TOPIARY_MAP_ENGINE_SEATS_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"
#include "map/engine/toll.h"

/* Who sits where, and what that costs, while a search changes it. */
struct mapping_state {
	const struct matrix *m;
	const struct slots *s;
	struct spot *at;		/* of each rank */
	double *pays;			/* what each rank pays where it sits */
	unsigned *rank;			/* on each slot, or SLOT_NONE */
	struct toll toll;		/* of no cells: not kept */
	unsigned long long work;	/* arcs looked at so far */
};

/* The slots first .. first+count-1. */
struct run {
	unsigned first, count;
};

/*
 * Where a toll of these cells is worth it, it is kept: then their slots are taken to be alike. At most one rank a slot.
 * 0, or -1 when memory is short. seats_free does also after that.
 */
int seats_init(struct mapping_state *t, const struct matrix *m, const struct slots *s, const struct stratum *cells,
	       const unsigned *slot);
void seats_free(struct mapping_state *t);

/* What whoever is on a slot would pay more on another, the others staying: by the toll, which is kept. */
static inline double seats_pays_more(const struct mapping_state *t, unsigned from, unsigned to)
{
	unsigned rank = t->rank[from];

	return rank == SLOT_NONE ? 0 : toll_pays(&t->toll, rank, to) - t->pays[rank];
}

/* The slot of each rank. */
void seats_tell(const struct mapping_state *t, unsigned *slot);

/* Exchange who sits on two runs of one length that have no slot in common, in order; what that would cost more. */
void seats_exchange(struct mapping_state *t, struct run a, struct run b);
double seats_change(struct mapping_state *t, struct run a, struct run b);

/* The same of two slots. What costs `limit` more or beyond may be told as any such number. */
void seats_swap(struct mapping_state *t, unsigned a, unsigned b);
double seats_swap_change(struct mapping_state *t, unsigned a, unsigned b, double limit);

#endif
