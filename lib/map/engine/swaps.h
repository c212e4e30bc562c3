/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SWAPS_H
#define TOPIARY_MAP_ENGINE_SWAPS_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Make a mapping cheaper, without chance: exchange what is on two domains of one shape, for every stratum from the top
 * to single slots, as long as that gains; a slot may be free, so that ranks also move. All exchanges are tried, or,
 * where that takes too long, those with domains around the ones where partners are. Ends at a local optimum or after so
 * much work, of which what was done is taken off: counted in arcs that were looked at, not timed, for a busy machine is
 * to give the same bytes. slot[m->ranks], at most one rank a slot before and after. 0, or -1 when memory is short, slot
 * then unchanged.
 */
int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot);

#endif
