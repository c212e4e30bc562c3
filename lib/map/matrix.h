/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_MATRIX_H
#define TOPIARY_MAP_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * A communication matrix: the bytes (or any weight) that each pair of ranks exchanges, symmetric (the sum of both directions),
 * without a diagonal; compressed rows: the neighbours of rank r are adj[row[r]] .. adj[row[r+1]-1], in increasing order.
 */
struct matrix {
	unsigned ranks;
	size_t *row;		/* row[ranks + 1] */
	unsigned *adj;
	double *weight;
};

#define MATRIX_MAX_RANKS 65536u

/*
 * Read a matrix, in the form that its first line tells: dense text (one row a line, as TreeMatch and netloc write it), Matrix
 * Market coordinate (%%MatrixMarket), or Scotch graph (.grf), whose edges already stand for both directions. Anything else,
 * a row too short, a negative or infinite weight is an error with file and line. NULL on error. Free with matrix_free, which
 * accepts NULL.
 */
struct matrix *matrix_read(const char *path, struct err *e);
struct matrix *matrix_parse(const char *text, size_t len, const char *name, struct err *e);
void matrix_free(struct matrix *m);

/* The matrix of the first n ranks; n <= m->ranks. NULL when memory is short. */
struct matrix *matrix_head(const struct matrix *m, unsigned n);

#endif
