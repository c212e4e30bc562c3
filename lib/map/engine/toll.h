/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_TOLL_H
#define TOPIARY_MAP_ENGINE_TOLL_H

#include <stdbool.h>
#include <stddef.h>

#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * What each rank would pay in each cell, the others staying: a cell is slots that are alike, or taken to be, all of one
 * domain. With it a move is judged without a look at the matrix; each move that is made changes a row for each partner.
 */
struct toll {
	unsigned cells;
	const unsigned *cell;		/* of each slot */
	double *between;		/* between[cell * cells + cell]: on the diagonal, between its first two slots */
	double *pays;			/* pays[rank * cells + cell] */
	double *change;			/* of a move, in each cell: for toll_move to write to */
};

/* Whether that is few enough to be worth it: then toll_init, which returns 0, or -1 when memory is short. */
bool toll_is_worth(const struct matrix *m, const struct stratum *cells);
int toll_init(struct toll *t, const struct matrix *m, const struct slots *s, const struct stratum *cells,
	      const unsigned *slot);
void toll_free(struct toll *t);

static inline double toll_pays(const struct toll *t, unsigned rank, unsigned slot)
{
	return t->pays[(size_t) rank * t->cells + t->cell[slot]];
}

static inline double toll_between(const struct toll *t, unsigned a, unsigned b)
{
	return t->between[(size_t) a * t->cells + b];
}

/* A rank goes from one slot to another: what its partners would pay. */
void toll_move(struct toll *t, const struct matrix *m, unsigned rank, unsigned from, unsigned to);

#endif
