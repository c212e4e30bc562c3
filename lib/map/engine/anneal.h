/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ANNEAL_H
#define TOPIARY_MAP_ENGINE_ANNEAL_H

#include <stdint.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983). A move takes a rank next to one of its partners, in
 * exchange with the rank there, or exchanges two domains. The first temperature is `warm` times the average change of a
 * move: 0.1 stays near the mapping given, 0.3 changes much of it. Ends after `work` edge evaluations; slot[m->ranks] is
 * then the cheapest mapping found, never a dearer one. The same seed gives the same result. At most one rank a slot,
 * before and after. Returns 0, or -1 when memory is short, slot then unchanged. Called by improve.c and node_anneal.c.
 */
int anneal_slots(const struct matrix *m, const struct slots *s, uint64_t seed, double warm, unsigned long long work,
		 unsigned *slot);

#endif
