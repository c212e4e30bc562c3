/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_MODES_H
#define TOPIARY_MAP_ENGINE_MODES_H

#include <stddef.h>
#include <stdint.h>

enum { MODES = 3 };

/* Who says how much to whom: each pair both ways, in rows, as in map/matrix/matrix.h. */
struct web {
	unsigned n;
	size_t *row;			/* row[n + 1] */
	unsigned *adj;
	double *weight;
	double *mass;			/* what each says in all, to those who became one with him as well */
};

/*
 * The slowest modes of a web but for the one in which all are alike: numbers mode[k][n] that differ little between
 * those who say much to each other. They are found where partners were made one, again and again until few are left,
 * and smoothed on the way back (Barnard and Simon, 1994): smoothing alone takes as many rounds as the web is wide,
 * squared. Adds to *work what it took, in arcs. 0, or -1 when memory is short.
 */
int modes_find(const struct web *w, uint64_t *chance, double *const mode[MODES], unsigned long long *work);

#endif
