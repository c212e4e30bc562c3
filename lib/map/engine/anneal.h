/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/*
 * A mapping while a search changes it, with the rank-by-domain cost table: what each rank would cost in each cell, all
 * others unmoved. A cell is a set of slots of one domain that are equal, or treated as equal. So a move is evaluated
 * without reading the matrix; each move updates a row for each partner. For annealing and exchanges.
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

/*
 * The quotient graph of a mapping at one level: each domain is a slot, and all ranks on it are one vertex. The cost
 * within a domain is the same on any other of its shape, and the cost between two domains depends on the pair alone: a
 * few sums give the change when two exchange their ranks.
 */
struct quotient {
	struct matrix *m;
	struct slots s;
	const struct slot_level *domains;
	unsigned *slot;			/* slot[m->ranks]: initially each vertex is on its own domain */
};

/* The level must be shaped (is_shaped). 0, or -1 when memory is short; quotient_free may be called in either case. */
int quotient_init(struct quotient *c, const struct matrix *m, const struct slots *s, unsigned level,
		  const unsigned *slot);
void quotient_free(struct quotient *c);

/* Applies c->slot, in which only domains of one shape were exchanged, to the slots of the ranks. */
void quotient_apply(const struct quotient *c, unsigned ranks, unsigned *slot);

/*
 * Deterministic local search: exchange the contents of two domains of one shape, for every level from the top to single
 * slots, as long as that gains; a slot may be free, so that ranks also move. Levels whose cost table would be too
 * large are left out. Ends at a local optimum or after *work edge evaluations,
 * from which those used are subtracted: counted, not timed, so that a busy machine gives the same result.
 * slot[m->ranks], at most one rank a slot, before and after. Returns 0, or -1 when memory is short, slot then
 * unchanged.
 */
int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot);

/*
 * Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) with the acceptance rule of Metropolis et al. (1953). A
 * move takes a rank into the domain of one of its partners or one near it, in exchange with the best of several ranks
 * or free slots there: with the rank-by-domain cost table each costs two numbers. The first
 * temperature is high, whatever the mapping given. Nothing is done where the table would be too large.
 *
 * All end after about `work` edge evaluations; slot[m->ranks] is then the mapping found, or unchanged if that is no
 * cheaper. The same seed gives the same result. At most one rank a slot, before and after. Return 0, or -1 with an
 * error: memory is short. Called by search.c.
 */

/*
 * Of whole domains, on the quotient graph, from the narrowest level to wider ones: ranks that share a
 * domain stay together, and two domains of one shape exchange what they hold. It changes a whole mapping at the cost of
 * a few ranks.
 */
int anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		   unsigned *slot, struct err *e);

/*
 * Of which ranks share a node, or a wider domain where the table would be too large: all distances within it count as
 * equal, a rank that enters it takes any slot, and the insides are mapped again afterwards (split.h).
 */
int anneal_nodes(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		 struct err *e);

/* Of the slots of single ranks, from a low temperature on: the mapping is a good one already. */
int anneal_ranks(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		 struct err *e);
