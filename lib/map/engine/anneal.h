/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ANNEAL_H
#define TOPIARY_MAP_ENGINE_ANNEAL_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) with the acceptance rule of Metropolis et al. (1953). A
 * move takes a rank into the domain of one of its partners or one near it, in exchange with the best of several ranks
 * or free slots there: with the rank-by-domain cost table (mapping_state.h) each costs two numbers. The first
 * temperature is high, whatever the mapping given. Nothing is done where the table would be too large.
 *
 * All end after about `work` edge evaluations; slot[m->ranks] is then the mapping found, or unchanged if that is no
 * cheaper. The same seed gives the same result. At most one rank a slot, before and after. Return 0, or -1 with an
 * error: memory is short. Called by improve.c.
 */

/*
 * Of whole domains, on the quotient graph (quotient.h), from the narrowest level to wider ones: ranks that share a
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

#endif
