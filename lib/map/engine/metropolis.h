/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_METROPOLIS_H
#define TOPIARY_MAP_ENGINE_METROPOLIS_H

#include "map/matrix/draw.h"

/* Resolution of the acceptance probability. */
#define METROPOLIS_STEPS 1024

/*
 * The acceptance rule of simulated annealing (Metropolis et al., 1953) as a table, because logarithms are slow: a move
 * that is dearer by `more` is accepted with probability exp(-more / temperature), that is, if more is at most a random
 * entry times the temperature.
 */
struct metropolis {
	double warmths[METROPOLIS_STEPS];
};

void metropolis_fill(struct metropolis *p);

static inline double metropolis_draw(const struct metropolis *p, uint64_t *chance)
{
	return p->warmths[draw_below(chance, METROPOLIS_STEPS)];
}

#endif
