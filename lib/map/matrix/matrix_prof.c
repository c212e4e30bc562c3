/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "map/matrix/matrix_parts.h"

static const char no_such_rank[] = "rank out of range (0 to 65535)";

/* "E from to N bytes ...": what one rank sent to another. */
static int traffic_read(struct matrix_scan *s)
{
	unsigned from, to, most;
	double bytes;

	if (matrix_count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &from) ||
	    matrix_count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &to) || matrix_weight_read(s, &bytes))
		return -1;
	if (matrix_line_ends(s) || strncmp(s->at, "bytes", 5))
		return matrix_scan_wrong(s, "expected 'bytes' after the number");
	most = from > to ? from : to;
	if (s->ranks <= most)
		s->ranks = most + 1;
	return matrix_pair_add(s, from, to, bytes);
}

/* "D MPI_COMM_WORLD procs: 0,1,2": in order, so that the last is the largest. The other communicators are subsets. */
static int communicator_read(struct matrix_scan *s)
{
	static const char world[] = "MPI_COMM_WORLD";
	unsigned last;

	if (matrix_line_ends(s) || strncmp(s->at, world, strlen(world)))
		return 0;
	for (size_t len = strcspn(s->at, "\r\n"); len && strchr("0123456789", s->at[len - 1]); len--)
		if (len == 1 || !strchr("0123456789", s->at[len - 2])) {
			s->at += len - 1;
			break;
		}
	if (matrix_count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &last))
		return -1;
	if (s->ranks <= last)
		s->ranks = last + 1;
	s->sure = true;
	return 0;
}

static int line_ignore(struct matrix_scan *s)
{
	(void) s;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct matrix_scan *s);
} lines[] = {
	{ "E", traffic_read }, { "I", traffic_read }, { "S", traffic_read }, { "R", traffic_read },
	{ "D", communicator_read },
	{ "C", line_ignore }, { "O2A", line_ignore }, { "A2O", line_ignore }, { "A2A", line_ignore },
};

/* The kind of the line, or -1. */
static int line_kind(const struct matrix_scan *s)
{
	size_t len = strcspn(s->at, " \t\r\n");

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (strlen(lines[i].name) == len && !memcmp(lines[i].name, s->at, len))
			return i;
	return -1;
}

bool matrix_prof_looks(const struct matrix_scan *s)
{
	return line_kind(s) >= 0;
}

int matrix_prof_read(struct matrix_scan *s)
{
	for (; matrix_line_seek_past(s, "#"); matrix_line_skip(s)) {
		int kind = line_kind(s);

		if (kind < 0)
			return matrix_scan_wrong(s, "not a line of Open MPI's monitoring: expected E, I, S, R, C, D, "
						    "O2A, A2O or A2A");
		s->at += strlen(lines[kind].name);
		if (lines[kind].read(s))
			return -1;
	}
	return 0;
}
