/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_BLUR_H
#define TOPIARY_MAP_ENGINE_BLUR_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing of who shares a node: a mapping seen blurred, where all within a node costs the same, so that a
 * table tells what each rank would pay on each node (toll.h) and a move is judged by two numbers for each of those
 * whose place it may take. Of some of them, by lot, it takes the best. Who comes to a node then takes what is free
 * there, and its inside is mended. It begins warm, whatever it is given. After about so much work, counted in arcs that
 * were looked at, slot[m->ranks] is what was found, or as it was where that is no cheaper. Where the table would be too
 * large it is of wider domains than nodes, or nothing is done. The same seed gives the same. At most one rank a slot
 * before and after. 0, or -1 with an error, slot then unchanged.
 */
int blur_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		struct err *e);

#endif
