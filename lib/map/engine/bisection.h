/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_BISECTION_H
#define TOPIARY_MAP_ENGINE_BISECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "map/matrix/matrix.h"

/* The ranks of a half that may still move: the gain of each, and the largest gain in each block of ranks. */
struct gain_buckets {
	double *gain, *most;		/* -INFINITY: not to be moved */
	bool *stale;			/* of each block: gains changed since most was computed */
};

/*
 * Some ranks in two halves, and their communication. The bias of a rank is what it costs more in the second half
 * because of partners that are in neither, in the unit of the weights. Halves that may vary in size have empty slots,
 * too, which communicate with nobody and change sides as ranks do: then a half of fixed size holds any number of ranks.
 */
struct bisection {
	unsigned n, ranks, blocks;	/* of n the first are ranks, the others empty slots; blocks: of gain_buckets */
	size_t *row;			/* of each rank, row[n + 1]: its partners among them */
	unsigned *adj;
	double *weight;
	double *bias, *gain;		/* gain: decrease of the cut if the rank changed sides */
	double grain;			/* smaller differences are rounding errors */
	bool *second;			/* of each rank: the half it is in */
	bool *locked;
	unsigned *swapped;
	struct gain_buckets buckets[2];
	unsigned long long work;	/* edge evaluations so far, or what takes as long */
};

/*
 * bias is 0 and second false at first, of empty slots as well. 0, or -1 when memory is short; bisection_free does also
 * after that.
 */
int bisection_init(struct bisection *h, const struct matrix *m, const struct some_ranks *some, unsigned empty);
void bisection_free(struct bisection *h);

/* The cut and the cost of the bias. To be called after `second` was changed and before the next two. */
double bisection_cut(struct bisection *h);

/*
 * One pass of Kernighan and Lin (1970): exchange pairs of ranks, the largest gain first, each rank once, then return to
 * the cheapest cut of the pass. Returns the decrease, never below 0. bisection_refine: passes until one gains nothing.
 */
double bisection_exchange(struct bisection *h);
double bisection_refine(struct bisection *h);

#endif
