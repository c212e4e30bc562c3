/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SWAPS_H
#define TOPIARY_MAP_ENGINE_SWAPS_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Deterministic local search: exchange the contents of two domains of one shape, for every level from the top to single
 * slots, as long as that gains; a slot may be free, so that ranks also move. Levels whose cost table would be too
 * large (mapping_state.h) are left out. Ends at a local optimum or after *work edge evaluations,
 * from which those used are subtracted: counted, not timed, so that a busy machine gives the same result.
 * slot[m->ranks], at most one rank a slot, before and after. Returns 0, or -1 when memory is short, slot then
 * unchanged.
 */
int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot);

#endif
