/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/matrix_parts.h"

/* Sums of weights times distances then cannot become infinite. */
#define MAX_WEIGHT 1e200

int matrix_scan_wrong(struct matrix_scan *s, const char *what)
{
	return err_set(s->err, "%s:%u: %s", s->name, s->line, what);
}

void matrix_line_skip(struct matrix_scan *s)
{
	const char *newline = memchr(s->at, '\n', s->end - s->at);

	s->at = newline ? newline + 1 : s->end;
	s->line += newline != NULL;
}

bool matrix_line_seek_past(struct matrix_scan *s, const char *comments)
{
	while (s->at < s->end && (matrix_line_ends(s) || (*s->at && strchr(comments, *s->at))))
		matrix_line_skip(s);
	return s->at < s->end;
}

bool matrix_line_seek(struct matrix_scan *s)
{
	return matrix_line_seek_past(s, "");
}

/*
 * The text ends with a NUL, so that strtod stops; letters are excluded because strtod reads hexadecimal, infinities and
 * NaN.
 */
static int number_read(struct matrix_scan *s, double *out)
{
	char *stop;
	double v;

	if (matrix_line_ends(s))
		return matrix_scan_wrong(s, "missing number");
	if (!*s->at || !strchr("+-.0123456789", *s->at))
		return matrix_scan_wrong(s, "not a number");
	v = strtod(s->at, &stop);
	if (*stop == ',' || *stop == ';')
		return matrix_scan_wrong(s, "numbers are separated by blanks, not by commas");
	if (stop == s->at || !matrix_number_ends(*stop) || !isfinite(v) || memchr(s->at, 'x', stop - s->at) ||
	    memchr(s->at, 'X', stop - s->at))
		return matrix_scan_wrong(s, "not a finite number");
	s->at = stop;
	*out = v;
	return 0;
}

int matrix_weight_read_any(struct matrix_scan *s, double *out)
{
	double v;

	if (number_read(s, &v))
		return -1;
	if (v < 0)
		return matrix_scan_wrong(s, "negative weight");
	if (v > MAX_WEIGHT)
		return matrix_scan_wrong(s, "weight above 1e200");
	*out = v;
	return 0;
}

int matrix_count_read(struct matrix_scan *s, unsigned min, unsigned max, const char *what, unsigned *out)
{
	uint64_t whole;
	double v;

	if (matrix_whole_read(s, &whole))
		v = whole;
	else if (number_read(s, &v))
		return -1;
	if (v < min || v > max || v != (double) (uint64_t) v)
		return matrix_scan_wrong(s, what);
	*out = v;
	return 0;
}

int matrix_ranks_read(struct matrix_scan *s, unsigned *out)
{
	return matrix_count_read(s, 1, MATRIX_MAX_RANKS, "the number of ranks must be 1 to 65536", out);
}

int matrix_pair_keep(struct matrix_scan *s, unsigned a, unsigned b, double weight)
{
	return matrix_entries_add(s->found, a, b, weight) ? matrix_scan_wrong(s, "out of memory") : 0;
}
