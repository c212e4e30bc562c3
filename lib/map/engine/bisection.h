/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"
#include "map/matrix/matrix.h"

enum { MODES = 3 };

/* A weighted graph: each edge in both directions, in rows, as in map/matrix/matrix.h. */
struct spectral_graph {
	unsigned n;
	size_t *row;			/* row[n + 1] */
	unsigned *adj;
	double *weight;
	double *mass;			/* total weight of each vertex, also of edges that were contracted into it */
};

/*
 * The lowest eigenvectors of the graph's Laplacian but the constant one: values mode[k][n] that differ little between
 * vertices with heavy edges. Multilevel (Barnard and Simon, 1994): computed on contracted graphs and smoothed on the
 * way back, because smoothing alone takes as many rounds as the square of the graph's diameter. Adds to *work what it
 * took, in edge evaluations. Returns 0, or -1 when memory is short.
 */
int spectral_modes(const struct spectral_graph *w, uint64_t *chance, double *const mode[MODES],
		   unsigned long long *work);

/*
 * Some ranks in two halves, and their communication. The bias of a rank is its additional cost in the second half due
 * to partners in neither half, in the unit of the weights. Halves of variable size also contain empty slots, which
 * communicate with nobody and change sides like ranks: so a half of fixed size holds any number of ranks.
 */
struct bisection {
	unsigned n, ranks;		/* the first of n are ranks, then empty slots */
	struct matrix *m;		/* of all n */
	double *bias, *gain;		/* gain: decrease of the cut if the rank changed sides */
	double grain;			/* smaller differences are rounding errors */
	bool *second;			/* by rank: its half */
	bool *locked;
	unsigned *swapped;
	/*
	 * By half, its largest gain, above those of its two parts, and so on down to those of the ranks, from `leaves`
	 * on; -INFINITY: locked or in the other half.
	 */
	double *most[2];
	unsigned leaves;
	unsigned long long work;	/* edge evaluations so far, or equivalent work */
};

/*
 * Initially bias is 0 and second false, also for empty slots. 0, or -1 when memory is short; bisection_free may be
 * called in either case.
 */
int bisection_init(struct bisection *h, const struct matrix *m, const struct matrix_ranks *some, unsigned empty);
void bisection_free(struct bisection *h);

/* Computes the cut plus the cost of the bias. Call it after changing `second` and before the next two. */
double bisection_cut(struct bisection *h);

/*
 * One pass of Kernighan and Lin (1970): exchanges pairs of ranks, the largest gain first, each rank once, then returns
 * to the cheapest cut of the pass. Returns the decrease, never below 0. bisection_refine: passes until one gains
 * nothing.
 */
double bisection_exchange(struct bisection *h);
double bisection_refine(struct bisection *h);

/*
 * Effort of the search for a cut. loose: a cut that is dearer by up to this share may be preferred at random, so that
 * another seed gives another.
 */
struct bisection_way {
	bool quick;
	double loose;
	uint64_t seed;
};

/*
 * Bisect the ranks so that the first half gets exactly `first` of ranks and empty slots, and the cut is small: along
 * directions in the space of the lowest eigenvectors of the graph's Laplacian (Pothen, Simon and Liou, 1990), in the
 * order of the ranks and in that of their bias; the best cuts are refined. Several directions, because the eigenvectors
 * of a cube have no unique orientation. The result is h->second. Returns 0, or -1 when memory is short.
 */
int bisection_run(struct bisection *h, unsigned first, struct bisection_way way);

/*
 * The same, starting from the halves in h->second: 1 if better ones were found, 0 if h->second is unchanged, -1 when
 * memory is short.
 */
int bisection_again(struct bisection *h, unsigned first, struct bisection_way way);
