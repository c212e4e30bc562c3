/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_NEIGHBOURHOOD_H
#define TOPIARY_MAP_ENGINE_NEIGHBOURHOOD_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Large-neighbourhood search (Shaw, 1998): take two domains of any level that communicate, repartition their ranks
 * between them, and refine each half below. What is not cheaper is undone, and a pair that gained nothing is not tried
 * again before a rank moved there. When no pair is left, a random one is repartitioned otherwise, those around it
 * follow, and the result is kept if the whole became cheaper (iterated local search: Lourenço, Martin and Stützle,
 * 2003). Where there are more slots than ranks, the shares of domains change as well. Ends after `work` edge
 * evaluations or what takes as long. At most one rank a slot, before and after; never dearer. Returns 0, or -1 with
 * slot undefined. Called by improve.c.
 */
int neighbourhood_search(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			 unsigned *slot, struct err *e);

#endif
