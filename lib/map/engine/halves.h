/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_HALVES_H
#define TOPIARY_MAP_ENGINE_HALVES_H

#include <stdbool.h>
#include <stddef.h>

#include "map/matrix/matrix.h"

/* The ranks of a half that may still move: what each gains, and the most in each block of them. */
struct contest {
	double *gain, *most;		/* -INFINITY: of no rank */
	bool *stale;			/* of each block: some gains are others since the most was found */
};

/*
 * Some ranks in two halves, and what is said between them. A rank may be drawn to one of the halves by others that are
 * in neither: pull is what it costs more in the second, in the unit of the weights. Where halves may be larger or
 * smaller there are also empty slots, to which nobody speaks and which change sides as ranks do: so halves of one size
 * hold any number of ranks.
 */
struct halves {
	unsigned n, ranks, blocks;	/* of n the first are ranks, the others empty slots; blocks: of a contest */
	size_t *row;			/* of each rank, row[n + 1]: its partners among them */
	unsigned *adj;
	double *weight;
	double *pull, *gain;		/* gain: what the cut would be cheaper if a rank changed sides */
	double grain;			/* less than that is nothing */
	bool *second;			/* of each rank: the half it is in */
	bool *locked;
	unsigned *swapped;
	struct contest contest[2];
	unsigned long long work;	/* arcs looked at so far, or what takes as long */
};

/*
 * pull is 0 and second false at first, of empty slots as well. 0, or -1 when memory is short; halves_free does also
 * after that.
 */
int halves_init(struct halves *h, const struct matrix *m, const struct some_ranks *some, unsigned empty);
void halves_free(struct halves *h);

/* What is cut, and what the pull costs: after `second` was written to, and before the next two. */
double halves_cut(struct halves *h);

/*
 * Exchange pairs of ranks, the best ones first, each rank once, and go back to where the cut was cheapest (Kernighan
 * and Lin, 1970). What it became cheaper: never below 0. halves_mend: again and again, while that helps.
 */
double halves_exchange(struct halves *h);
double halves_mend(struct halves *h);

#endif
