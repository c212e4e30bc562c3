/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_DOMAIN_COSTS_H
#define TOPIARY_MAP_ENGINE_DOMAIN_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * The rank-by-domain cost table: what each rank would cost in each cell, all others unmoved. A cell is a set of slots
 * of one domain that are equal, or treated as equal. With it a move is evaluated without reading the matrix; each move
 * updates a row for each partner.
 */
struct domain_costs {
	unsigned cells;
	const unsigned *cell;		/* by slot */
	double *between;		/* between[cell * cells + cell]: on the diagonal, between its first two slots */
	double *pays;			/* pays[rank * cells + cell] */
	double *change;			/* by cell, for a move: scratch space of domain_costs_move */
};

/*
 * Whether the table is small enough to be worth its updates. domain_costs_init returns 0, or -1 when memory is short.
 */
bool domain_costs_is_worth(const struct matrix *m, const struct slot_level *cells);
int domain_costs_init(struct domain_costs *t, const struct matrix *m, const struct slots *s,
		      const struct slot_level *cells, const unsigned *slot);
void domain_costs_free(struct domain_costs *t);

static inline double domain_costs_pays(const struct domain_costs *t, unsigned rank, unsigned slot)
{
	return t->pays[(size_t) rank * t->cells + t->cell[slot]];
}

static inline double domain_costs_between(const struct domain_costs *t, unsigned a, unsigned b)
{
	return t->between[(size_t) a * t->cells + b];
}

/* Updates the costs of a rank's partners when it moves from one slot to another. */
void domain_costs_move(struct domain_costs *t, const struct matrix *m, unsigned rank, unsigned from, unsigned to);

#endif
