/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_AFAR_H
#define TOPIARY_MAP_ENGINE_AFAR_H

#include <stdint.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Lay out anew what is on whole domains, from small to wide ones, by annealing them as coarse.h shows them: who shares
 * one stays together, and any two of one shape may change places, so that all of a mapping is turned over for what a
 * few ranks cost. After so much work, counted in arcs that were looked at, it is the cheapest that was met, never a
 * worse one. The same seed gives the same. slot[m->ranks], at most one rank a slot before and after. 0, or -1 when
 * memory is short.
 */
int afar_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot);

#endif
