/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ANNEAL_H
#define TOPIARY_MAP_ENGINE_ANNEAL_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing of a mapping. Both end after `work` edge evaluations; slot[m->ranks] is then the cheapest mapping
 * found, never a dearer one. The same seed gives the same result. At most one rank a slot, before and after. Return 0,
 * or -1 with an error: memory is short. Called by improve.c.
 */

/*
 * A move takes a rank next to one of its partners, in exchange with the rank there, or exchanges two domains. The first
 * temperature is `warm` times the average change of a move: 0.1 stays near the mapping given, 0.3 changes much of it.
 */
int anneal_slots(const struct matrix *m, const struct slots *s, uint64_t seed, double warm, unsigned long long work,
		 unsigned *slot, struct err *e);

/*
 * Of whole domains, on the quotient graph (quotient.h), from the narrowest level to wider ones: ranks that share a
 * domain stay together, and two domains of one shape exchange what they hold. It changes a whole mapping at the cost of
 * a few ranks.
 */
int anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		   unsigned *slot, struct err *e);

#endif
