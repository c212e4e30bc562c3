/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SPECTRAL_H
#define TOPIARY_MAP_ENGINE_SPECTRAL_H

#include <stddef.h>
#include <stdint.h>

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

#endif
