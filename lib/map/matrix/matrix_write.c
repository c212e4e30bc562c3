/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "map/matrix/matrix.h"

/* The largest signed 32-bit integer, the default type of Scotch's numbers. */
#define GRAPH_MOST 2147483647.0
/* Digits by which any double reads back exactly. */
#define EXACT 17
#define WHOLE 9007199254740992.0	/* 2^53 */

static void number_write(struct buf *out, double v)
{
	if (v == floor(v) && v < WHOLE)
		buf_printf(out, "%" PRIu64, (uint64_t) v);
	else
		buf_printf(out, "%.*g", EXACT, v);
}

static void dense_row(const struct matrix *m, unsigned r, struct buf *out)
{
	size_t i = m->row[r];

	for (unsigned c = 0; c < m->ranks; c++) {
		if (c)
			buf_puts(out, " ");
		if (i < m->row[r + 1] && m->adj[i] == c)
			number_write(out, m->weight[i++] / 2);
		else
			buf_puts(out, "0");
	}
	buf_puts(out, "\n");
}

/* Half in each direction: readers add both. */
static void dense_write(const struct matrix *m, struct buf *out, double *scale)
{
	*scale = 1;
	for (unsigned r = 0; r < m->ranks && !out->failed; r++)
		dense_row(m, r, out);
}

static void market_write(const struct matrix *m, struct buf *out, double *scale)
{
	*scale = 1;
	buf_printf(out, "%%%%MatrixMarket matrix coordinate real symmetric\n%u %u %zu\n", m->ranks, m->ranks,
		   m->row[m->ranks] / 2);
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1] && m->adj[i] < r; i++) {
			buf_printf(out, "%u %u ", r + 1, m->adj[i] + 1);
			number_write(out, m->weight[i] / 2);
			buf_puts(out, "\n");
		}
}

static double graph_weight(double weight, double scale)
{
	return fmax(1, round(weight / scale));
}

static double graph_sum(const struct matrix *m, double scale)
{
	double sum = 0;

	for (size_t i = 0; i < m->row[m->ranks]; i++)
		sum += graph_weight(m->weight[i], scale);
	return sum;
}

/* Weights rounded up to 1 may require more than one step. */
static double graph_scale(const struct matrix *m)
{
	double scale = 1;

	for (double sum = graph_sum(m, 1); sum > GRAPH_MOST && m->row[m->ranks] < GRAPH_MOST; sum = graph_sum(m, scale))
		scale = ceil(scale * fmax(sum / GRAPH_MOST, 1.01));
	return scale;
}

static void graph_write(const struct matrix *m, struct buf *out, double *scale)
{
	*scale = graph_scale(m);
	buf_printf(out, "0\n%u\t%zu\n0\t010\n", m->ranks, m->row[m->ranks]);
	for (unsigned r = 0; r < m->ranks; r++) {
		buf_printf(out, "%zu", m->row[r + 1] - m->row[r]);
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			buf_printf(out, "\t%.0f %u", graph_weight(m->weight[i], *scale), m->adj[i]);
		buf_puts(out, "\n");
	}
}

static const struct {
	const char *name;
	void (*write)(const struct matrix *m, struct buf *out, double *scale);
} forms[] = { { "dense", dense_write }, { "mm", market_write }, { "grf", graph_write } };

int matrix_write(const struct matrix *m, const char *format, struct buf *out, double *scale, struct err *e)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (strcmp(format, forms[i].name))
			continue;
		forms[i].write(m, out, scale);
		return out->failed ? err_set(e, "%s: out of memory", format) : 0;
	}
	return err_set(e, "%s: unknown matrix format; expected dense, mm or grf", format);
}
