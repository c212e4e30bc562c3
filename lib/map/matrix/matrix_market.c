/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "map/matrix/matrix_parts.h"

static const char comments[] = "%";

/* The banner of a Matrix Market file. Source: Boisvert, Pozo, Remington, NISTIR 5935, "Coordinate formats". */
struct market {
	bool pattern;
	double times;	/* what an entry stands for: itself, or itself and its mirror image */
};

static int banner_read(struct matrix_scan *s, struct market *k)
{
	char object[16], layout[16], field[16], symmetry[16], text[128];
	size_t len = strcspn(s->at, "\r\n");

	snprintf(text, sizeof(text), "%.*s", (int) (len < sizeof(text) ? len : sizeof(text) - 1), s->at);
	if (sscanf(text, "%%%%MatrixMarket %15s %15s %15s %15s", object, layout, field, symmetry) != 4 ||
	    strcasecmp(object, "matrix") || strcasecmp(layout, "coordinate"))
		return matrix_scan_wrong(s, "expected '%%MatrixMarket matrix coordinate'");
	k->pattern = !strcasecmp(field, "pattern");
	if (!k->pattern && strcasecmp(field, "real") && strcasecmp(field, "integer"))
		return matrix_scan_wrong(s, "the field must be real, integer or pattern");
	k->times = strcasecmp(symmetry, "symmetric") ? 1 : 2;
	if (k->times == 1 && strcasecmp(symmetry, "general"))
		return matrix_scan_wrong(s, "the symmetry must be general or symmetric");
	matrix_line_skip(s);
	return 0;
}

static int sizes_read(struct matrix_scan *s, unsigned *entries)
{
	unsigned cols;

	matrix_line_seek_past(s, comments);
	if (matrix_ranks_read(s, &s->ranks) || matrix_ranks_read(s, &cols) ||
	    matrix_count_read(s, 0, UINT32_MAX, "the number of entries is out of range", entries))
		return -1;
	if (cols != s->ranks)
		return matrix_scan_wrong(s, "the matrix is not square");
	if (!matrix_line_ends(s))
		return matrix_scan_wrong(s, "text after the sizes");
	matrix_line_skip(s);
	return 0;
}

static int entry_read(struct matrix_scan *s, const struct market *k)
{
	double weight = 1;
	unsigned a, b;

	if (matrix_count_read(s, 1, s->ranks, "row out of range", &a) ||
	    matrix_count_read(s, 1, s->ranks, "column out of range", &b) ||
	    (!k->pattern && matrix_weight_read(s, &weight)))
		return -1;
	if (!matrix_line_ends(s))
		return matrix_scan_wrong(s, "text after the entry");
	matrix_line_skip(s);
	return matrix_pair_add(s, a - 1, b - 1, k->times * weight);
}

int matrix_market_read(struct matrix_scan *s)
{
	struct market k = {0};
	unsigned entries;

	if (banner_read(s, &k) || sizes_read(s, &entries))
		return -1;
	for (; entries; entries--)
		if (!matrix_line_seek_past(s, comments))
			return matrix_scan_wrong(s, "fewer entries than the header says");
		else if (entry_read(s, &k))
			return -1;
	return matrix_line_seek_past(s, comments) ? matrix_scan_wrong(s, "more entries than the header says") : 0;
}
