/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_QUOTIENT_H
#define TOPIARY_MAP_ENGINE_QUOTIENT_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * The quotient graph of a mapping at one level: each domain is a slot, and all ranks on it are one vertex. The cost
 * within a domain is the same on any other of its shape, and the cost between two domains depends on the pair alone: a
 * few sums give the change when two exchange their ranks.
 */
struct quotient {
	struct matrix *m;
	struct slots s;
	const struct slot_level *domains;
	unsigned *slot;			/* slot[m->ranks]: initially each vertex is on its own domain */
};

/* The level must be shaped (is_shaped). 0, or -1 when memory is short; quotient_free may be called in either case. */
int quotient_init(struct quotient *c, const struct matrix *m, const struct slots *s, unsigned level,
		  const unsigned *slot);
void quotient_free(struct quotient *c);

/* Applies c->slot, in which only domains of one shape were exchanged, to the slots of the ranks. */
void quotient_apply(const struct quotient *c, unsigned ranks, unsigned *slot);

#endif
