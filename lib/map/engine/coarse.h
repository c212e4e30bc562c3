/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_COARSE_H
#define TOPIARY_MAP_ENGINE_COARSE_H

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * A mapping seen from afar: the domains of a stratum are slots, and all that is on one of them is one rank. What is
 * within a domain costs the same on any other of its shape, and what its ranks say to those of another counts by the
 * pair of domains: so a few sums tell what it brings to exchange two.
 */
struct coarse {
	struct matrix m;
	struct slots s;
	const struct stratum *domains;
	unsigned *slot;			/* slot[m.ranks]: each at first on the domain whose number it has */
};

/* The stratum is shaped. 0, or -1 when memory is short; coarse_free does also after that. */
int coarse_init(struct coarse *c, const struct matrix *m, const struct slots *s, unsigned stratum,
		const unsigned *slot);
void coarse_free(struct coarse *c);

/* Move the ranks of the mapping as c->slot says, which exchanged domains of one shape alone. */
void coarse_tell(const struct coarse *c, unsigned ranks, unsigned *slot);

#endif
