/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SCOTCH_H
#define TOPIARY_MAP_ENGINE_SCOTCH_H

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Map the ranks with Scotch onto the slots, seen as one tree, as netloc calls it (hwloc, netloc/scotch.c; Goglin et
 * al., Euro-Par 2017, section 5.2, the whole at once). The same arguments give the same mapping. Several ranks may come
 * to one slot: Scotch balances, it does not forbid. slot[] holds m->ranks. 0, or -1 with slot of no meaning.
 */
int scotch_map(const struct matrix *m, const struct slots *s, unsigned seed, unsigned *slot, struct err *e);

/*
 * Part some of the ranks into parts of about those sizes, which sum up to their number, all of them above 0, so that
 * little is exchanged between them: the weights that section 5.2 of the paper lacks. Scotch halves halves, and does not
 * go on to refine all parts together, as its own strategies do: that takes three times as long and is hardly better.
 * part[n]. 0, or -1 with part of no meaning.
 */
int scotch_split(const struct matrix *m, const struct some_ranks *some, unsigned parts, const unsigned *size,
		 unsigned seed, unsigned *part, struct err *e);

#endif
