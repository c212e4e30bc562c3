/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_SWAPS_H
#define TOPIARY_MAP_SWAPS_H

#include "map/matrix.h"
#include "map/places.h"

/* No rank is on the place. */
#define SWAPS_FREE (~0u)

/*
 * Make a mapping cheaper, without chance: exchange what is on two domains with the same number of places, for every level
 * from nodes to single cores, as long as that gains; a core may be free, so that ranks also move. A domain is tried against those
 * where its ranks' partners are, and around them. Ends at a local optimum or after a bounded amount of work.
 * place[m->ranks], at most one rank a place before and after. 0, or -1 when memory is short, place then unchanged.
 */
int swaps_polish(const struct matrix *m, const struct places *p, unsigned *place);

/* Cost of a rank at a place, the others staying; partners whose place is SWAPS_FREE do not count. */
double swaps_rank_cost(const struct matrix *m, const struct places *p, const unsigned *place, unsigned rank, unsigned at);

#endif
