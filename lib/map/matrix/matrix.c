/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/matrix/matrix.h"

#include <math.h>

#include "base/array.h"

int matrix_entries_add(struct matrix_entries *f, unsigned a, unsigned b, double weight)
{
	if (a == b || weight == 0)
		return 0;
	if (array_reserve(f->entry, f->n, 1))
		return -1;
	f->entry[f->n++] = (struct matrix_entry){ .a = a < b ? a : b, .b = a < b ? b : a, .weight = weight };
	return 0;
}

/* One pass of a stable counting sort: a sum of weights is then the same on every machine. */
static void entries_deal(const struct matrix_entry *from, struct matrix_entry *to, size_t n, size_t *first,
			 unsigned ranks, bool by_a)
{
	memset(first, 0, (ranks + 1) * sizeof(*first));
	for (size_t i = 0; i < n; i++)
		first[(by_a ? from[i].a : from[i].b) + 1]++;
	for (unsigned r = 0; r < ranks; r++)
		first[r + 1] += first[r];
	for (size_t i = 0; i < n; i++)
		to[first[by_a ? from[i].a : from[i].b]++] = from[i];
}

int matrix_entries_sort(struct matrix_entries *f, unsigned ranks)
{
	struct matrix_entry *other = malloc(f->n * sizeof(*other));
	size_t *first = malloc((ranks + 1) * sizeof(*first));

	if (other && first) {
		entries_deal(f->entry, other, f->n, first, ranks, false);
		entries_deal(other, f->entry, f->n, first, ranks, true);
		size_t n = 0;

		for (size_t i = 0; i < f->n; i++)
			if (n && f->entry[n - 1].a == f->entry[i].a && f->entry[n - 1].b == f->entry[i].b) {
				f->entry[n - 1].weight += f->entry[i].weight;
				f->entry[n - 1].messages[0] += f->entry[i].messages[0];
				f->entry[n - 1].messages[1] += f->entry[i].messages[1];
			} else {
				f->entry[n++] = f->entry[i];
			}
		f->n = n;
	}
	free(other);
	free(first);
	return other && first ? 0 : -1;
}

/* Without weights yet. NULL when memory is short. */
static struct matrix *matrix_new(unsigned ranks, size_t arcs, bool messages)
{
	struct matrix *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->ranks = ranks;
	m->row = calloc(ranks + 1, sizeof(*m->row));
	m->adj = malloc((arcs + 1) * sizeof(*m->adj));
	m->weight = malloc((arcs + 1) * sizeof(*m->weight));
	m->messages = messages ? malloc((arcs + 1) * sizeof(*m->messages)) : NULL;
	if (m->row && m->adj && m->weight && (m->messages || !messages))
		return m;
	matrix_free(m);
	return NULL;
}

static void arc_set(struct matrix *m, size_t *next, unsigned from, unsigned to, const struct matrix_entry *f)
{
	m->adj[next[from]] = to;
	if (m->messages)
		m->messages[next[from]] = f->messages[from > to];
	m->weight[next[from]++] = f->weight;
}

/*
 * Writes entries in the order of (a, b): every row gets first its smaller neighbours, then its larger ones, each in
 * order.
 */
static void rows_fill(struct matrix *m, const struct matrix_entries *f, size_t *next)
{
	for (size_t i = 0; i < f->n; i++) {
		m->row[f->entry[i].a + 1]++;
		m->row[f->entry[i].b + 1]++;
	}
	for (unsigned r = 0; r < m->ranks; r++) {
		m->row[r + 1] += m->row[r];
		next[r] = m->row[r];
	}
	for (size_t i = 0; i < f->n; i++)
		arc_set(m, next, f->entry[i].b, f->entry[i].a, &f->entry[i]);
	for (size_t i = 0; i < f->n; i++)
		arc_set(m, next, f->entry[i].a, f->entry[i].b, &f->entry[i]);
}

static bool counts_messages(const struct matrix_entries *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->entry[i].messages[0] + f->entry[i].messages[1] == 0)
			return false;
	return f->n;
}

struct matrix *matrix_build(unsigned ranks, struct matrix_entries *f)
{
	size_t *next = calloc(ranks, sizeof(*next));
	struct matrix *m = NULL;

	if (next && (!f->n || !matrix_entries_sort(f, ranks)) && (m = matrix_new(ranks, 2 * f->n, counts_messages(f))))
		rows_fill(m, f, next);
	free(next);
	return m;
}

void matrix_free(struct matrix *m)
{
	if (!m)
		return;
	free(m->row);
	free(m->adj);
	free(m->weight);
	free(m->messages);
	free(m);
}

struct matrix *matrix_some(const struct matrix *m, const struct matrix_ranks *some, unsigned silent)
{
	struct matrix *part;
	size_t arcs = 0;

	for (unsigned r = 0; r < some->n; r++)
		arcs += m->row[some->rank[r] + 1] - m->row[some->rank[r]];
	if (!(part = matrix_new(some->n + silent, arcs, false)))
		return NULL;
	arcs = 0;
	for (unsigned r = 0; r < some->n; r++) {
		for (size_t i = m->row[some->rank[r]]; i < m->row[some->rank[r] + 1]; i++) {
			if (some->local[m->adj[i]] >= some->n)
				continue;
			part->adj[arcs] = some->local[m->adj[i]];
			part->weight[arcs++] = m->weight[i];
		}
		part->row[r + 1] = arcs;
	}
	for (unsigned r = 0; r < silent; r++)
		part->row[some->n + r + 1] = arcs;
	return part;
}

struct matrix *matrix_range(const struct matrix *m, unsigned first, unsigned n)
{
	unsigned *rank = malloc((2 * (size_t) m->ranks + 1) * sizeof(*rank));
	struct matrix *part = NULL;

	for (unsigned r = 0; rank && r < m->ranks; r++) {
		rank[r] = first + r;
		rank[m->ranks + r] = r - first;
	}
	if (rank)
		part = matrix_some(m, &(struct matrix_ranks){ rank, rank + m->ranks, n }, 0);
	free(rank);
	return part;
}

struct matrix *matrix_contract(const struct matrix *m, const unsigned *group, unsigned groups)
{
	struct matrix_entries f = { malloc((m->row[m->ranks] / 2 + 1) * sizeof(*f.entry)), 0 };
	struct matrix *contracted = NULL;

	for (unsigned r = 0; f.entry && r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			if (group[r] < group[m->adj[i]])
				f.entry[f.n++] = (struct matrix_entry){ .a = group[r], .b = group[m->adj[i]],
							       .weight = m->weight[i] };
	if (f.entry)
		contracted = matrix_build(groups, &f);
	free(f.entry);
	return contracted;
}

double matrix_distance(const struct matrix *a, const struct matrix *b)
{
	double sum_a = 0, sum_b = 0, d = 0;

	for (size_t i = 0; i < a->row[a->ranks]; i++)
		sum_a += a->weight[i];
	for (size_t i = 0; i < b->row[b->ranks]; i++)
		sum_b += b->weight[i];
	for (unsigned r = 0; r < a->ranks; r++) {
		size_t i = a->row[r], j = b->row[r];

		while (i < a->row[r + 1] || j < b->row[r + 1]) {
			unsigned to_a = i < a->row[r + 1] ? a->adj[i] : UINT_MAX;
			unsigned to_b = j < b->row[r + 1] ? b->adj[j] : UINT_MAX;

			d += fabs((to_a <= to_b ? a->weight[i++] / sum_a : 0) -
				  (to_b <= to_a ? b->weight[j++] / sum_b : 0));
		}
	}
	return d / 2;
}

/* --- written --- */

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

/* Half in each direction: readers add both. */
static void dense_write(const struct matrix *m, struct buf *out, double *scale)
{
	*scale = 1;
	for (unsigned r = 0; r < m->ranks && !out->failed; r++) {
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

/* Half of the bytes in each direction, as for dense. */
static void prof_write(const struct matrix *m, struct buf *out, double *scale)
{
	*scale = 1;
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			buf_printf(out, "E\t%u\t%u\t", r, m->adj[i]);
			number_write(out, m->weight[i] / 2);
			buf_puts(out, " bytes");
			if (m->messages) {
				buf_puts(out, "\t");
				number_write(out, m->messages[i]);
				buf_puts(out, " msgs sent");
			}
			buf_puts(out, "\n");
		}
	buf_puts(out, "D\tMPI_COMM_WORLD\tprocs: ");
	for (unsigned r = 0; r < m->ranks; r++)
		buf_printf(out, "%s%u", r ? "," : "", r);
	buf_puts(out, "\n");
}

static const struct {
	const char *name;
	void (*write)(const struct matrix *m, struct buf *out, double *scale);
} forms[] = { { "dense", dense_write }, { "mm", market_write }, { "grf", graph_write },
	      { "prof", prof_write } };

int matrix_write(const struct matrix *m, const char *format, struct buf *out, double *scale, struct err *e)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (strcmp(format, forms[i].name))
			continue;
		forms[i].write(m, out, scale);
		return out->failed ? err_set(e, "%s: out of memory", format) : 0;
	}
	return err_set(e, "%s: unknown matrix format; expected dense, mm, grf or prof", format);
}
