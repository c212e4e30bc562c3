/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_PATIENCE_H
#define TOPIARY_MAP_ENGINE_PATIENCE_H

#include "map/matrix/draw.h"

/* Chances are told apart so finely. */
#define PATIENCE 1024

/*
 * How much dearer, in warmths, a move of simulated annealing may be, by lot: one that is `more` dearer is taken with
 * the chance exp(-more / warmth). A table, since logarithms take long.
 */
struct patience {
	double warmths[PATIENCE];
};

void patience_fill(struct patience *p);

static inline double patience_draw(const struct patience *p, uint64_t *chance)
{
	return p->warmths[draw_below(chance, PATIENCE)];
}

#endif
