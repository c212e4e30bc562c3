/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * A communication matrix: the bytes (or any weight) that each pair of ranks exchanges, symmetric (the sum of both
 * directions), without a diagonal; compressed rows: the neighbours of rank r are adj[row[r]] .. adj[row[r+1]-1], in
 * increasing order. Weights are doubles, so that no sum of bytes overflows; beyond 2^53 they are rounded.
 *
 * messages: how many the row's rank sent to that neighbour; NULL if what was read does not say so of each pair.
 */
struct matrix {
	unsigned ranks;
	size_t *row;		/* row[ranks + 1] */
	unsigned *adj;
	double *weight;
	double *messages;
};

#define MATRIX_MAX_RANKS 65536u

/*
 * Reads a matrix; the format is detected by its first lines; lines that begin with '#' or '%' before it are comments.
 * - Dense text, one row a line, as TreeMatch and netloc write it.
 * - Matrix Market coordinate (%%MatrixMarket), general or symmetric.
 *   Both are made symmetric: a pair weighs the sum of both directions.
 * - Scotch graph (.grf), whose edges already stand for both directions; if their two ends differ, the mean counts.
 * - Open MPI's monitoring (.prof; ompi/mca/common/monitoring/common_monitoring.c, 4.1): what a rank sent, of one rank
 *   or of several. A pair weighs its lines E (the application's messages), I (those of the library, which carry the
 *   collectives) and S and R (one-sided). C and the lines of communicators count the same collectives again and are
 *   ignored. These files count messages, too.
 * Anything else, a short row, and a negative, infinite or missing weight are errors with file and line. NULL on error.
 * Free with matrix_free, which accepts NULL.
 */
struct matrix *matrix_read(const char *path, struct err *e);
struct matrix *matrix_parse(const char *text, size_t len, const char *name, struct err *e);
void matrix_free(struct matrix *m);

/*
 * The sum of several files, in any of these formats. Monitoring files state the number of ranks; files that disagree
 * are of different runs, which is an error that names two, or, with `largest`, only those of the largest runs count.
 */
struct matrix_files {
	char **path;
	size_t n;
	bool largest;
	bool *used;		/* out, NULL or used[n]: which files count */
};
struct matrix *matrix_sum(struct matrix_files *f, struct err *e);

/*
 * Writes a matrix: "dense", "mm" (Matrix Market, symmetric), "grf" (Scotch) or "prof" (Open MPI's monitoring), which
 * alone has messages. It reads back as the same matrix, except grf, whose weights are integers: at least 1 each, their
 * sum over both ends at most 2^31 - 1, the limit of common builds of Scotch; they are divided by *scale (1: not
 * scaled). Another name is an error that lists these. 0 or -1.
 */
int matrix_write(const struct matrix *m, const char *format, struct buf *out, double *scale, struct err *e);

/*
 * A subset of the ranks: rank[n]; local[ranks] is the index in rank[] of each of those, and n or more for all others.
 */
struct matrix_ranks {
	const unsigned *rank, *local;
	unsigned n;
};

/*
 * The matrix of some ranks, and of so many more that communicate with nobody; that of the ranks first .. first+n-1; and
 * that of groups of ranks, whose weights are the sums between two groups: group[ranks] < groups. None has messages.
 * NULL when memory is short.
 */
struct matrix *matrix_some(const struct matrix *m, const struct matrix_ranks *some, unsigned silent);
struct matrix *matrix_range(const struct matrix *m, unsigned first, unsigned n);
struct matrix *matrix_contract(const struct matrix *m, const unsigned *group, unsigned groups);

/*
 * How much two matrices of the same number of ranks differ: half the sum over pairs of the absolute difference of their
 * shares of all bytes; 0: the same pattern, 1: no common pair.
 */
double matrix_distance(const struct matrix *a, const struct matrix *b);

/* What matrix.c makes matrices of, for those that read or generate them. */

/* The weight of one pair, a < b, and its messages from a and from b; a pair may occur several times. */
struct matrix_entry {
	unsigned a, b;
	double weight, messages[2];
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

/*
 * The matrix of these entries, which are sorted and merged in place; with messages, if each pair has some. NULL when
 * memory is short.
 */
struct matrix *matrix_build(unsigned ranks, struct matrix_entries *f);
