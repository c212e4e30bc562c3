/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SPLIT_H
#define TOPIARY_MAP_ENGINE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/* The method of partitioning: Scotch, or bisection with or without the external bias. */
enum split_by { SPLIT_BY_SCOTCH, SPLIT_BY_BISECTION, SPLIT_BY_BISECTION_UNBIASED };

/*
 * With fewer ranks than slots: each domain gets an equal share, or as few as possible get any, or whatever cuts least
 * (bisection only).
 */
enum split_sizes { SPLIT_EVEN, SPLIT_PACKED, SPLIT_FREE };

struct split_way {
	enum split_by by;
	enum split_sizes sizes;
	bool halved;
	bool quick;		/* of bisection.h */
	double loose;		/* of bisection.h */
};

/*
 * Maps from the top down, level by level: partitions the ranks of a domain among the domains in it, each getting
 * exactly its number (Goglin et al., Euro-Par 2017, section 5.2, the first strategy, with the weights that it lacked).
 * A torus is partitioned into its routers at once, or halved repeatedly. At most one rank a slot. slot[] holds
 * m->ranks. 0, or -1 with slot undefined.
 */
int split_map(const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed, unsigned *slot,
	      struct err *e);

/*
 * Maps again within each domain of a level but the last: ranks stay in their domain, and no domain becomes dearer. 0 or
 * -1, as split_map.
 */
int split_insides(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed, unsigned *slot,
		  struct err *e);

#endif
