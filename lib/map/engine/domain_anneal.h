/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_DOMAIN_ANNEAL_H
#define TOPIARY_MAP_ENGINE_DOMAIN_ANNEAL_H

#include <stdint.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing of whole domains on the quotient graph (quotient.h), from the narrowest level to wider ones:
 * ranks that share a domain stay together, and two domains of one shape exchange what they hold. It changes a whole
 * mapping at the cost of a few ranks. Ends after `work` edge evaluations; slot[m->ranks] is then the cheapest mapping
 * found, never a dearer one. The same seed gives the same result. At most one rank a slot, before and after. Returns 0,
 * or -1 when memory is short. Called by improve.c.
 */
int domain_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		  unsigned *slot);

#endif
