/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* A target for each reader of matrices, FORM of room.mk: how what it reads begins. */
#include "fuzz.h"
#include "map/matrix/matrix.h"

#define RANKS_MAX 500u		/* more only take time */

enum { any, dense, graph, market, prof };
static const char *const begin[] = {
	[any] = "", [dense] = "0 ", [graph] = "0\n", [market] = "%%MatrixMarket matrix coordinate ",
	[prof] = "D\tMPI_COMM_WORLD\tprocs: 0,1,2,3\n",
};

static double weight_of(const struct matrix *m, unsigned a, unsigned b)
{
	for (size_t i = m->row[a]; i < m->row[a + 1]; i++)
		if (m->adj[i] == b)
			return m->weight[i];
	return -1;
}

static void check_form(const struct matrix *m)
{
	if (!m->ranks || m->ranks > MATRIX_MAX_RANKS || m->row[0])
		abort();
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			if (m->adj[i] >= m->ranks || m->adj[i] == r || (i > m->row[r] && m->adj[i - 1] >= m->adj[i]) ||
			    !(m->weight[i] > 0) || !isfinite(m->weight[i]) ||
			    weight_of(m, m->adj[i], r) != m->weight[i])
				abort();
}

/* The smallest numbers have no half. */
static int has_tiny_weight(const struct matrix *m)
{
	for (size_t i = 0; i < m->row[m->ranks]; i++)
		if (m->weight[i] < 1e-300 || m->weight[i] > 1e200)
			return 1;
	return 0;
}

static void check_written(const struct matrix *m, const char *format, int same)
{
	struct buf text = {0};
	struct matrix *again;
	double scale;

	if (matrix_write(m, format, &text, &scale, NULL) || !(again = matrix_parse(text.data, text.len, "again", NULL)))
		abort();
	check_form(again);
	if (again->ranks != m->ranks || again->row[m->ranks] != m->row[m->ranks] ||
	    (same && memcmp(again->weight, m->weight, m->row[m->ranks] * sizeof(*m->weight))))
		abort();
	matrix_free(again);
	buf_free(&text);
}

/* Whatever is accepted is symmetric and in order, and is written so that it reads as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = begin_with(begin[FORM], data, &size);
	struct matrix *m = matrix_parse(text, size, "fuzz", NULL);

	free(text);
	if (!m)
		return 0;
	if (m->ranks <= RANKS_MAX) {
		check_form(m);
		if (!has_tiny_weight(m)) {
			check_written(m, "mm", 1);
			check_written(m, "dense", 1);
			check_written(m, "grf", 0);
		}
	}
	matrix_free(m);
	return 0;
}
