/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SPLIT_H
#define TOPIARY_MAP_ENGINE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/* Which method partitions: Scotch, or bisect.h with the bias of ranks that are in neither half, or without. */
enum split_by { SPLIT_BY_SCOTCH, SPLIT_BY_HALVES, SPLIT_BY_HALVES_ALONE };

/*
 * With fewer ranks than slots: each domain gets an equal share, or as few as possible get any, or whatever cuts least
 * (bisection only).
 */
enum split_sizes { SPLIT_EVEN, SPLIT_PACKED, SPLIT_FREE };

struct split_way {
	enum split_by by;
	enum split_sizes sizes;
	bool halved;
	bool quick;		/* of bisect.h */
	double loose;		/* of bisect.h */
};

/*
 * Map from the top down, level by level: partition the ranks of a domain among the domains in it, each to get exactly
 * as many as it is to hold (Goglin et al., Euro-Par 2017, section 5.2, the first strategy, with the weights that it
 * lacked). A torus is parted into its routers at once, or, halved, again and again. At most one rank a slot. slot[]
 * holds m->ranks. 0, or -1 with slot of no meaning.
 */
int split_map(const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed, unsigned *slot,
	      struct err *e);

/*
 * Map anew within each domain of a level but the last: its ranks stay in it, and it gets no dearer. 0 or -1,
 * as split_map.
 */
int split_insides(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed, unsigned *slot,
		  struct err *e);

#endif
