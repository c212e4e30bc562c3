/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/std.h"
#include "map/matrix/matrix.h"

/*
 * Communication by a rule that holds for any number of ranks: a matrix can be made of it, and it is recognised in a
 * recorded matrix, so that what was recorded with some ranks is known for others. Called by cli/place (--generate,
 * --topo-matrix=auto).
 *
 * In a grid of up to four sides, each rank exchanges with those one step away (a stencil; periodic by side; a ring is a
 * grid of one side), or with all others of its row along each side (lines: of one side all-to-all, of two pencils).
 * In a tree, with its parent. Trees have one side.
 */
enum { PATTERN_SIDES = 4, PATTERN_STEPS = 81, PATTERN_TEXT = 128 };

struct pattern {
	enum pattern_kind { PATTERN_STENCIL, PATTERN_LINES, PATTERN_BINARY, PATTERN_BINOMIAL } kind;
	/*
	 * How ranks are numbered: row by row; bit by bit of each side in turn (Morton); block by block, row by row in
	 * each; or without a rule, which is recognised only, while the search lasts, and not of trees.
	 */
	enum pattern_order { PATTERN_ROWS, PATTERN_MORTON, PATTERN_BLOCKS, PATTERN_NO_ORDER } order;
	unsigned ranks, sides;
	unsigned side[PATTERN_SIDES];	/* the side along which numbers follow each other first */
	unsigned block[PATTERN_SIDES];	/* of PATTERN_BLOCKS */
	bool periodic[PATTERN_SIDES];	/* of stencils */
	/*
	 * What two ranks exchange, both ways together. Stencils: by step, the digits of which to base 3 are 0, 1, 2 for
	 * one back, none, one ahead along each side, and the same for the opposite step; if both lead to one rank, the
	 * sum. Lines: by side. Trees: the first.
	 */
	double weight[PATTERN_STEPS];
	double distance;		/* of what was recognised from the matrix */
};

/* NULL when memory is short. */
struct matrix *pattern_matrix(const struct pattern *p);

/*
 * The pattern whose matrix has the least matrix_distance from m, if that is at most PATTERN_DISTANCE and nothing that
 * sets its kind apart is hidden because all sides are too short. It takes a second at most: a matrix that needs more is
 * not recognised. 0, or -1: none, or no memory.
 */
#define PATTERN_DISTANCE 0.05
int pattern_recognise(const struct matrix *m, struct pattern *out, struct err *e);

/*
 * The same pattern of another number of ranks. A grid must be the one that MPI_Dims_create makes, in any order of its
 * sides, and becomes the one that it makes of the other number, in the same order: a side that was longer does not
 * become shorter. What a rank exchanges with each neighbour, and with each row, stays, as in programs whose problem
 * grows with the ranks. 0, or -1 with the reason why the other grid is not known.
 */
int pattern_resize(const struct pattern *p, unsigned ranks, struct pattern *out, struct err *e);

/* "3-dimensional stencil 4x4x4, periodic", "ring", "all-to-all", "pencils 8x8, ranks in blocks of 2x2", ... */
#define PATTERN_SHUFFLED "ranks in no regular order"
void pattern_describe(const struct pattern *p, char text[static PATTERN_TEXT]);
void pattern_describe_sides(const struct pattern *p, char text[static PATTERN_TEXT]);	/* "4x4x4" */
