/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ANNEALING_H
#define TOPIARY_MAP_ENGINE_ANNEALING_H

#include "map/matrix/draw.h"
#include "map/engine/mapping_state.h"

/* Resolution of the acceptance probability. */
#define ANNEALING_CHANCES 1024

/*
 * Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) with the acceptance rule of Metropolis et al. (1953), as a
 * table because logarithms are slow: a move that is dearer by `more` is accepted with probability exp(-more /
 * temperature), that is, if more is at most a random entry times the temperature. For anneal.c (ranks and domains) and
 * node_anneal.c, which differ in what a move is.
 */
struct annealing {
	struct mapping_state state;
	unsigned *best;			/* by rank: its slot in the cheapest mapping so far */
	double cost, least;		/* of the present mapping, and of the best */
	double warmth;			/* the temperature */
	uint64_t chance;
	double chances[ANNEALING_CHANCES];
};

struct annealing_way {
	/* The change in cost of a random move, which is not made; 0 if it changes nothing. */
	double (*sample)(struct annealing *a);
	/* Makes a random move if it is accepted, and adds its change to cost. */
	void (*step)(struct annealing *a);
	/* The temperature after this share of the work; change: the average of the samples. */
	double (*warmth)(const struct annealing *a, double change, double done);
	double least_gain;		/* what a new best must gain, as a share of its cost */
};

/* As mapping_state_init; the costs are 0. annealing_free may be called in either case. */
int annealing_init(struct annealing *a, const struct matrix *m, const struct slots *s, const struct slot_level *cells,
		   uint64_t seed, const unsigned *slot);
void annealing_free(struct annealing *a);

/* Until state.work is `work`. */
void annealing_run(struct annealing *a, const struct annealing_way *way, unsigned long long work);

/* From which change on the next move is refused. */
static inline double annealing_limit(struct annealing *a)
{
	return a->warmth * a->chances[draw_below(&a->chance, ANNEALING_CHANCES)];
}

#endif
