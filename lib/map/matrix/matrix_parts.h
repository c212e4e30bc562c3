/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_MATRIX_MATRIX_PARTS_H
#define TOPIARY_MAP_MATRIX_MATRIX_PARTS_H

#include <stddef.h>

#include "base/err.h"
#include "map/matrix/matrix.h"

/* What matrix.c makes matrices of, for those that read or generate them. */

/* The weight of one pair, a < b; a pair may occur several times. */
struct matrix_entry {
	unsigned a, b;
	double weight;
};

/* Memory grows with what was read, never with what a header claims. */
struct matrix_entries {
	struct matrix_entry *entry;
	size_t n;
};

/* Adds to the weight of a and b, in either order; the diagonal and zeros are ignored. 0, or -1: no memory. */
int matrix_entries_add(struct matrix_entries *f, unsigned a, unsigned b, double weight);

/* Sorts by a, then b, and sums up equal pairs, in the same order on every machine. 0, or -1: no memory. */
int matrix_entries_sort(struct matrix_entries *f, unsigned ranks);

/* Without weights yet. NULL when memory is short. */
struct matrix *matrix_new(unsigned ranks, size_t arcs);

/* The matrix of these entries, which are sorted and merged in place. NULL when memory is short. */
struct matrix *matrix_build(unsigned ranks, struct matrix_entries *f);

#endif
