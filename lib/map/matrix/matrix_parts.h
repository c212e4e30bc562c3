/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_MATRIX_MATRIX_PARTS_H
#define TOPIARY_MAP_MATRIX_MATRIX_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"

/* Shared by the files matrix*.c. */

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

/* Without weights yet. NULL when memory is short. */
struct matrix *matrix_new(unsigned ranks, size_t arcs);

/* The matrix of these entries, which are sorted and merged in place. NULL when memory is short. */
struct matrix *matrix_build(unsigned ranks, struct matrix_entries *f);

/* A position in a text that ends with a NUL, at end. */
struct matrix_scan {
	const char *name;
	const char *at, *end;
	unsigned line;
	unsigned ranks;		/* 0: unknown yet */
	bool sure;		/* the file itself states the number of ranks */
	struct matrix_entries *found;
	struct err *err;
};

/* One reader for each format: reads the whole file into found and ranks. 0, or -1 with an error of file and line. */
int matrix_dense_read(struct matrix_scan *s);
int matrix_market_read(struct matrix_scan *s);
int matrix_graph_read(struct matrix_scan *s);
int matrix_prof_read(struct matrix_scan *s);
bool matrix_prof_looks(const struct matrix_scan *s);

/* Sets an error with the line; always -1. */
int matrix_scan_wrong(struct matrix_scan *s, const char *what);

/*
 * matrix_line_ends: whether only blanks are left on the line. Then: to the next line; to the first line that is not
 * blank, false at the end of the text.
 */
static inline bool matrix_line_ends(struct matrix_scan *s)
{
	while (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
		s->at++;
	return *s->at == '\n' || s->at == s->end;
}

void matrix_line_skip(struct matrix_scan *s);
bool matrix_line_seek(struct matrix_scan *s);
/* The same, also skipping lines that begin with one of these characters. */
bool matrix_line_seek_past(struct matrix_scan *s, const char *comments);

static inline bool matrix_number_ends(char c)
{
	return !c || c == ' ' || (c >= '\t' && c <= '\r');
}

/* Integers of so many digits are exact in a double. */
#define EXACT_DIGITS 15

/*
 * Reads a short integer after blanks, the most frequent form in large files. False for anything else; only the blanks
 * are then consumed.
 */
static inline bool matrix_whole_read(struct matrix_scan *s, uint64_t *out)
{
	const char *p;
	uint64_t v = 0;

	if (matrix_line_ends(s))
		return false;
	for (p = s->at; *p >= '0' && *p <= '9' && p - s->at < EXACT_DIGITS; p++)
		v = v * 10 + (uint64_t) (*p - '0');
	if (p == s->at || !matrix_number_ends(*p))
		return false;
	s->at = p;
	*out = v;
	return true;
}

/* Reads a number on this line, followed by a blank or its end. 0 or -1. */
int matrix_weight_read_any(struct matrix_scan *s, double *out);
int matrix_count_read(struct matrix_scan *s, unsigned min, unsigned max, const char *what, unsigned *out);
int matrix_ranks_read(struct matrix_scan *s, unsigned *out);

static inline int matrix_weight_read(struct matrix_scan *s, double *out)
{
	uint64_t whole;

	if (!matrix_whole_read(s, &whole))
		return matrix_weight_read_any(s, out);
	*out = whole;
	return 0;
}

/* matrix_entries_add with the error set; most values of a dense text are 0. */
int matrix_pair_keep(struct matrix_scan *s, unsigned a, unsigned b, double weight);

static inline int matrix_pair_add(struct matrix_scan *s, unsigned a, unsigned b, double weight)
{
	return weight == 0 ? 0 : matrix_pair_keep(s, a, b, weight);
}

#endif
