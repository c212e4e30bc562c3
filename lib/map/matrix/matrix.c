/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/matrix/matrix.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/file.h"
#include "map/matrix/matrix_parts.h"

#define MAX_BYTES ((size_t) 2 << 30)

int matrix_entries_add(struct matrix_entries *f, unsigned a, unsigned b, double weight)
{
	if (a == b || weight == 0)
		return 0;
	if (array_reserve(f->entry, f->n, 1))
		return -1;
	f->entry[f->n++] = (struct matrix_entry){ a < b ? a : b, a < b ? b : a, weight };
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

static void entries_merge(struct matrix_entries *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (n && f->entry[n - 1].a == f->entry[i].a && f->entry[n - 1].b == f->entry[i].b)
			f->entry[n - 1].weight += f->entry[i].weight;
		else
			f->entry[n++] = f->entry[i];
	f->n = n;
}

static int entries_sort(struct matrix_entries *f, unsigned ranks)
{
	struct matrix_entry *other = malloc(f->n * sizeof(*other));
	size_t *first = malloc((ranks + 1) * sizeof(*first));

	if (other && first) {
		entries_deal(f->entry, other, f->n, first, ranks, false);
		entries_deal(other, f->entry, f->n, first, ranks, true);
		entries_merge(f);
	}
	free(other);
	free(first);
	return other && first ? 0 : -1;
}

struct matrix *matrix_new(unsigned ranks, size_t arcs)
{
	struct matrix *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->ranks = ranks;
	m->row = calloc(ranks + 1, sizeof(*m->row));
	m->adj = malloc((arcs + 1) * sizeof(*m->adj));
	m->weight = malloc((arcs + 1) * sizeof(*m->weight));
	if (m->row && m->adj && m->weight)
		return m;
	matrix_free(m);
	return NULL;
}

static void arc_set(struct matrix *m, size_t *next, unsigned from, unsigned to, double weight)
{
	m->adj[next[from]] = to;
	m->weight[next[from]++] = weight;
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
		arc_set(m, next, f->entry[i].b, f->entry[i].a, f->entry[i].weight);
	for (size_t i = 0; i < f->n; i++)
		arc_set(m, next, f->entry[i].a, f->entry[i].b, f->entry[i].weight);
}

struct matrix *matrix_build(unsigned ranks, struct matrix_entries *f)
{
	size_t *next = calloc(ranks, sizeof(*next));
	struct matrix *m = NULL;

	if (next && (!f->n || !entries_sort(f, ranks)) && (m = matrix_new(ranks, 2 * f->n)))
		rows_fill(m, f, next);
	free(next);
	return m;
}

/* The first line of a Scotch graph is its version alone; so is the only line of a dense matrix of one rank. */
static bool looks_graph(const char *text)
{
	if (*text != '0')
		return false;
	text += 1 + strspn(text + 1, " \t\r");
	return *text == '\n' && text[strspn(text, " \t\r\n")];
}

static int scan_any(struct matrix_scan *s)
{
	matrix_line_seek(s);
	if (!strncasecmp(s->at, "%%MatrixMarket", 14))
		return matrix_market_read(s);
	if (!matrix_line_seek_past(s, "#%"))
		return 0;
	if (matrix_prof_looks(s))
		return matrix_prof_read(s);
	return looks_graph(s->at) ? matrix_graph_read(s) : matrix_dense_read(s);
}

/* text[len] must be a NUL, as a struct buf has it. */
static int scan_text(struct matrix_scan *s, const char *text, size_t len)
{
	s->at = text;
	s->end = text + len;
	s->line = 1;
	if (len && scan_any(s))
		return -1;
	return s->ranks ? 0 : err_set(s->err, "%s: empty", s->name);
}

static struct matrix *matrix_from_entries(const char *name, unsigned ranks, struct matrix_entries *f, struct err *e)
{
	struct matrix *m = matrix_build(ranks, f);

	if (!m)
		err_set(e, "%s: out of memory", name);
	return m;
}

struct matrix *matrix_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct matrix_entries found = {0};
	struct matrix_scan s = { .name = name, .found = &found, .err = e };
	struct matrix *m = NULL;
	struct buf copy = {0};

	buf_add(&copy, text, len);
	if (copy.failed)
		err_set(e, "%s: out of memory", name);
	else if (!scan_text(&s, copy.data, len))
		m = matrix_from_entries(name, s.ranks, &found, e);
	buf_free(&copy);
	free(found.entry);
	return m;
}

/* The sum of the files so far. */
struct sum {
	struct matrix_entries found;
	unsigned ranks;
	const char *sure;	/* a file that states the number of ranks, or NULL */
	size_t merge_at;	/* entries are merged at this number */
};

#define MERGE_AT ((size_t) 1 << 20)

/* Limits memory for thousands of files to about twice that of one. */
static int merge_when_many(struct sum *sum)
{
	if (sum->found.n < sum->merge_at)
		return 0;
	if (entries_sort(&sum->found, sum->ranks))
		return -1;
	sum->merge_at = 2 * sum->found.n + MERGE_AT;
	return 0;
}

/* Drops the files before file i. */
static void forget_files(struct matrix_files *f, size_t i)
{
	if (f->used)
		memset(f->used, 0, i * sizeof(*f->used));
}

/* The file's entries begin at `first`. Entries of smaller runs are dropped. Returns 1: the file counts. */
static int runs_differ(struct sum *sum, struct matrix_files *f, size_t i, const struct matrix_scan *s, size_t first)
{
	if (!f->largest)
		return err_set(s->err, "%s: %u ranks, but %s has %u: they are of different runs", s->name, s->ranks,
			       sum->sure, sum->ranks);
	if (s->ranks < sum->ranks) {
		sum->found.n = first;
		return 0;
	}
	sum->found.n -= first;
	memmove(sum->found.entry, sum->found.entry + first, sum->found.n * sizeof(*sum->found.entry));
	forget_files(f, i);
	sum->ranks = s->ranks;
	sum->sure = s->name;
	return 1;
}

/* Returns 1: the file counts, 0: it does not, -1: error. */
static int file_add(struct sum *sum, struct matrix_files *f, size_t i, struct err *e)
{
	struct matrix_scan s = { .name = f->path[i], .found = &sum->found, .err = e };
	size_t first = sum->found.n;
	struct buf text;
	int rc;

	if (file_read(s.name, MAX_BYTES, &text, e))
		return -1;
	rc = scan_text(&s, text.data, text.len);
	buf_free(&text);
	if (rc)
		return -1;
	if (s.sure && sum->sure && s.ranks != sum->ranks)
		return runs_differ(sum, f, i, &s, first);
	if (s.sure)
		sum->sure = s.name;
	if (sum->ranks < s.ranks)
		sum->ranks = s.ranks;
	return 1;
}

struct matrix *matrix_sum(struct matrix_files *f, struct err *e)
{
	struct sum sum = { .merge_at = MERGE_AT };
	struct matrix *m = NULL;
	int rc = 0;

	for (size_t i = 0; i < f->n && rc >= 0; i++) {
		if ((rc = file_add(&sum, f, i, e)) >= 0 && f->used)
			f->used[i] = rc;
		if (rc >= 0 && merge_when_many(&sum))
			rc = err_set(e, "%s: out of memory", f->path[i]);
	}
	if (f->n && rc >= 0)
		m = matrix_from_entries(f->path[0], sum.ranks, &sum.found, e);
	free(sum.found.entry);
	return m;
}

struct matrix *matrix_read(const char *path, struct err *e)
{
	char *paths[] = { (char *) path };
	struct matrix_files one = { .path = paths, .n = 1 };

	return matrix_sum(&one, e);
}

void matrix_free(struct matrix *m)
{
	if (!m)
		return;
	free(m->row);
	free(m->adj);
	free(m->weight);
	free(m);
}
