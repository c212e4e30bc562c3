/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/matrix/matrix_parts.h"

static const char comments[] = "#%";

static int row_read(struct matrix_scan *s, unsigned row)
{
	unsigned col;

	for (col = 0; !matrix_line_ends(s); col++) {
		double weight;

		if (row ? col == s->ranks : col == MATRIX_MAX_RANKS)
			return matrix_scan_wrong(s, row ? "the row is longer than the first" : "more than 65536 ranks");
		if (matrix_weight_read(s, &weight) || matrix_pair_add(s, row, col, weight))
			return -1;
	}
	if (!row)
		s->ranks = col;
	return col < s->ranks ? matrix_scan_wrong(s, "the row is shorter than the first") : 0;
}

int matrix_dense_read(struct matrix_scan *s)
{
	unsigned row;

	for (row = 0; matrix_line_seek_past(s, comments); row++)
		if (row && row == s->ranks)
			return matrix_scan_wrong(s, "more rows than columns");
		else if (row_read(s, row))
			return -1;
	return row < s->ranks ? matrix_scan_wrong(s, "fewer rows than columns") : 0;
}
