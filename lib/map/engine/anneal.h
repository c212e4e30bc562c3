/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ANNEAL_H
#define TOPIARY_MAP_ENGINE_ANNEAL_H

#include <stdint.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) over moves of a rank next to a partner, who is there going
 * where it came from, and exchanges of whole domains. It begins as warm as `warm` times what a move changes on an
 * average, 0.1: near what it is given, 0.3: much is thrown over. After so much work, counted in arcs that were looked
 * at, slot[m->ranks] is the cheapest mapping that was met: never a worse one. The same seed gives the same. At most one
 * rank a slot before and after. 0, or -1 when memory is short, slot then unchanged.
 */
int anneal(const struct matrix *m, const struct slots *s, uint64_t seed, double warm, unsigned long long work,
	   unsigned *slot);

#endif
