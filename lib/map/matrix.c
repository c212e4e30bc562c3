/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/matrix.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/file.h"

#define MAX_BYTES ((size_t) 1 << 30)
/* So that no sum of weights times distances can become infinite. */
#define MAX_WEIGHT 1e200

/* What one pair exchanges, a < b; a pair may come several times. */
struct entry {
	unsigned a, b;
	double weight;
};

struct entries {
	struct entry *entry;
	size_t n, room;
};

/* Entries grow with what was read, never with what a header claims. */
struct reader {
	const char *name;
	const char *at, *end;
	unsigned line;
	unsigned ranks;
	struct entries found;
	struct err *err;
};

static int wrong(struct reader *r, const char *what)
{
	return err_set(r->err, "%s:%u: %s", r->name, r->line, what);
}

static bool line_ends(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
	return r->at == r->end || *r->at == '\n';
}

static void line_skip(struct reader *r)
{
	const char *newline = memchr(r->at, '\n', r->end - r->at);

	r->at = newline ? newline + 1 : r->end;
	r->line += newline != NULL;
}

/* To the first line that is neither blank nor begins with the comment sign (0: no comments). False at the end. */
static bool line_seek(struct reader *r, char comment)
{
	while (r->at < r->end && (line_ends(r) || (comment && *r->at == comment)))
		line_skip(r);
	return r->at < r->end;
}

static bool number_ends(char c)
{
	return !c || isspace((unsigned char) c);
}

/* The text ends with a NUL, so that strtod stops; letters would let it read hexadecimal, infinities and NaN. */
static int number_read(struct reader *r, double *out)
{
	char *stop;
	double v;

	if (line_ends(r))
		return wrong(r, "a number is missing");
	if (!strchr("+-.0123456789", *r->at) || !*r->at)
		return wrong(r, "not a number");
	v = strtod(r->at, &stop);
	if (stop == r->at || !number_ends(*stop) || !isfinite(v) || memchr(r->at, 'x', stop - r->at) ||
	    memchr(r->at, 'X', stop - r->at))
		return wrong(r, "not a finite number");
	r->at = stop;
	*out = v;
	return 0;
}

static int weight_read(struct reader *r, double *out)
{
	if (number_read(r, out))
		return -1;
	if (*out < 0)
		return wrong(r, "a weight below 0");
	return *out > MAX_WEIGHT ? wrong(r, "a weight above 1e200") : 0;
}

static int count_read(struct reader *r, double min, double max, const char *what, unsigned *out)
{
	double v;

	if (number_read(r, &v))
		return -1;
	if (v < min || v > max || v != floor(v))
		return wrong(r, what);
	*out = v;
	return 0;
}

static int ranks_read(struct reader *r, unsigned *out)
{
	return count_read(r, 1, MATRIX_MAX_RANKS, "the number of ranks must be 1 to 65536", out);
}

static int entry_add(struct reader *r, unsigned a, unsigned b, double weight)
{
	struct entries *f = &r->found;

	if (a == b || weight == 0)
		return 0;
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 256;
		struct entry *bigger = realloc(f->entry, room * sizeof(*bigger));

		if (!bigger)
			return wrong(r, "out of memory");
		f->entry = bigger;
		f->room = room;
	}
	f->entry[f->n++] = (struct entry){ a < b ? a : b, a < b ? b : a, weight };
	return 0;
}

static int dense_row(struct reader *r, unsigned row)
{
	unsigned col;

	for (col = 0; !line_ends(r); col++) {
		double weight;

		if (row ? col == r->ranks : col == MATRIX_MAX_RANKS)
			return wrong(r, row ? "the row is longer than the first" : "more than 65536 ranks");
		if (weight_read(r, &weight) || entry_add(r, row, col, weight))
			return -1;
	}
	if (!row)
		r->ranks = col;
	return col < r->ranks ? wrong(r, "the row is shorter than the first") : 0;
}

static int dense_read(struct reader *r)
{
	unsigned row;

	for (row = 0; line_seek(r, 0); row++)
		if (row && row == r->ranks)
			return wrong(r, "more rows than columns");
		else if (dense_row(r, row))
			return -1;
	return row < r->ranks ? wrong(r, "fewer rows than columns") : 0;
}

/* What the banner of a Matrix Market file says. Source: Boisvert, Pozo, Remington, NISTIR 5935, "Coordinate formats". */
struct market {
	bool pattern;
	double times;	/* what an entry stands for: itself, or itself and its mirror */
};

static int market_banner(struct reader *r, struct market *k)
{
	char object[16], layout[16], field[16], symmetry[16], text[128];
	size_t len = strcspn(r->at, "\r\n");

	snprintf(text, sizeof(text), "%.*s", (int) (len < sizeof(text) ? len : sizeof(text) - 1), r->at);
	if (sscanf(text, "%%%%MatrixMarket %15s %15s %15s %15s", object, layout, field, symmetry) != 4 ||
	    strcasecmp(object, "matrix") || strcasecmp(layout, "coordinate"))
		return wrong(r, "only '%%MatrixMarket matrix coordinate' is read");
	k->pattern = !strcasecmp(field, "pattern");
	if (!k->pattern && strcasecmp(field, "real") && strcasecmp(field, "integer"))
		return wrong(r, "the field must be real, integer or pattern");
	k->times = strcasecmp(symmetry, "symmetric") ? 1 : 2;
	if (k->times == 1 && strcasecmp(symmetry, "general"))
		return wrong(r, "the symmetry must be general or symmetric");
	line_skip(r);
	return 0;
}

static int market_entry(struct reader *r, const struct market *k)
{
	double weight = 1;
	unsigned a, b;

	if (count_read(r, 1, r->ranks, "no such row", &a) || count_read(r, 1, r->ranks, "no such column", &b) ||
	    (!k->pattern && weight_read(r, &weight)))
		return -1;
	if (!line_ends(r))
		return wrong(r, "text after the entry");
	line_skip(r);
	return entry_add(r, a - 1, b - 1, k->times * weight);
}

static int market_read(struct reader *r)
{
	unsigned cols, entries;
	struct market k = {0};

	if (market_banner(r, &k))
		return -1;
	line_seek(r, '%');
	if (ranks_read(r, &r->ranks) || ranks_read(r, &cols) ||
	    count_read(r, 0, UINT32_MAX, "the number of entries is out of range", &entries))
		return -1;
	if (cols != r->ranks)
		return wrong(r, "the matrix is not square");
	if (!line_ends(r))
		return wrong(r, "text after the sizes");
	line_skip(r);
	for (; entries; entries--)
		if (!line_seek(r, '%'))
			return wrong(r, "fewer entries than the header says");
		else if (market_entry(r, &k))
			return -1;
	return line_seek(r, '%') ? wrong(r, "more entries than the header says") : 0;
}

/* A Scotch graph's numbers stand anywhere between line ends. */
static int graph_count(struct reader *r, double min, double max, const char *what, unsigned *out)
{
	line_seek(r, 0);
	return count_read(r, min, max, what, out);
}

/* Source: Scotch user's guide, "Graph format": version, vertices and arcs, base and flags. */
struct graph {
	unsigned arcs, base;
	bool vertex_loads, edge_loads;
};

static int graph_header(struct reader *r, struct graph *g)
{
	unsigned version, flags;

	if (graph_count(r, 0, 0, "the version must be 0", &version))
		return -1;
	line_seek(r, 0);
	if (ranks_read(r, &r->ranks) ||
	    graph_count(r, 0, UINT32_MAX, "the number of arcs is out of range", &g->arcs) ||
	    graph_count(r, 0, 1, "the base must be 0 or 1", &g->base) ||
	    graph_count(r, 0, 11, "the flags must be 000, 001, 010 or 011 (no vertex labels)", &flags))
		return -1;
	if (flags % 10 > 1)
		return wrong(r, "the flags must be 000, 001, 010 or 011 (no vertex labels)");
	g->vertex_loads = flags % 10;
	g->edge_loads = flags / 10;
	return 0;
}

static int graph_arc(struct reader *r, const struct graph *g, unsigned from)
{
	double weight = 1;
	unsigned to = 0;

	if (g->edge_loads) {
		line_seek(r, 0);
		if (weight_read(r, &weight))
			return -1;
	}
	if (graph_count(r, g->base, r->ranks - 1 + g->base, "no such vertex", &to))
		return -1;
	/* An edge is written from both of its ends. */
	return entry_add(r, from, to - g->base, weight / 2);
}

static int graph_vertex(struct reader *r, struct graph *g, unsigned vertex)
{
	unsigned load, degree = 0;

	if (g->vertex_loads && graph_count(r, 0, UINT32_MAX, "a load out of range", &load))
		return -1;
	if (graph_count(r, 0, g->arcs, "a degree above the arcs that are left", &degree))
		return -1;
	for (g->arcs -= degree; degree; degree--)
		if (graph_arc(r, g, vertex))
			return -1;
	return 0;
}

static int graph_read(struct reader *r)
{
	struct graph g;

	if (graph_header(r, &g))
		return -1;
	for (unsigned v = 0; v < r->ranks; v++)
		if (graph_vertex(r, &g, v))
			return -1;
	if (g.arcs)
		return wrong(r, "fewer arcs than the header says");
	return line_seek(r, 0) ? wrong(r, "text after the last vertex") : 0;
}

static int entry_order(const void *x, const void *y)
{
	const struct entry *p = x, *q = y;

	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return (p->weight > q->weight) - (p->weight < q->weight);
}

static void entries_merge(struct entries *f)
{
	size_t n = 0;

	qsort(f->entry, f->n, sizeof(*f->entry), entry_order);
	for (size_t i = 0; i < f->n; i++)
		if (n && f->entry[n - 1].a == f->entry[i].a && f->entry[n - 1].b == f->entry[i].b)
			f->entry[n - 1].weight += f->entry[i].weight;
		else
			f->entry[n++] = f->entry[i];
	f->n = n;
}

static struct matrix *matrix_new(unsigned ranks, size_t arcs)
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

static void arc_put(struct matrix *m, size_t *next, unsigned from, unsigned to, double weight)
{
	m->adj[next[from]] = to;
	m->weight[next[from]++] = weight;
}

/* Entries in order of (a, b): every row gets first its smaller neighbours, then its greater ones, each in order. */
static struct matrix *matrix_build(unsigned ranks, struct entries *f)
{
	struct matrix *m;
	size_t *next;

	if (f->n)
		entries_merge(f);
	m = matrix_new(ranks, 2 * f->n);
	next = calloc(ranks, sizeof(*next));
	if (!m || !next) {
		matrix_free(m);
		free(next);
		return NULL;
	}
	for (size_t i = 0; i < f->n; i++) {
		m->row[f->entry[i].a + 1]++;
		m->row[f->entry[i].b + 1]++;
	}
	for (unsigned r = 0; r < ranks; r++) {
		m->row[r + 1] += m->row[r];
		next[r] = m->row[r];
	}
	for (size_t i = 0; i < f->n; i++)
		arc_put(m, next, f->entry[i].b, f->entry[i].a, f->entry[i].weight);
	for (size_t i = 0; i < f->n; i++)
		arc_put(m, next, f->entry[i].a, f->entry[i].b, f->entry[i].weight);
	free(next);
	return m;
}

/* A Scotch graph's first line is its version alone; so is the only line of a dense matrix of one rank. */
static bool looks_graph(const char *text)
{
	const char *rest = text + strspn(text, " \t\r\n");

	if (*rest != '0')
		return false;
	rest += 1 + strspn(rest + 1, " \t\r");
	return *rest == '\n' && rest[strspn(rest, " \t\r\n")];
}

static int matrix_scan(struct reader *r)
{
	if (!strncasecmp(r->at, "%%MatrixMarket", 14))
		return market_read(r);
	return looks_graph(r->at) ? graph_read(r) : dense_read(r);
}

/* text[len] must be a NUL, as a struct buf has it. */
static struct matrix *matrix_from(const char *text, size_t len, const char *name, struct err *e)
{
	struct reader r = { .name = name, .at = text, .end = text + len, .line = 1, .err = e };
	struct matrix *m = NULL;

	if (len && matrix_scan(&r))
		goto out;
	if (!r.ranks)
		err_set(e, "%s: empty", name);
	else if (!(m = matrix_build(r.ranks, &r.found)))
		err_set(e, "%s: out of memory", name);
out:
	free(r.found.entry);
	return m;
}

struct matrix *matrix_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct matrix *m = NULL;
	struct buf copy = {0};

	buf_add(&copy, text, len);
	if (copy.failed)
		err_set(e, "%s: out of memory", name);
	else
		m = matrix_from(copy.data, len, name, e);
	buf_free(&copy);
	return m;
}

struct matrix *matrix_read(const char *path, struct err *e)
{
	struct buf text;
	struct matrix *m;

	if (file_read(path, MAX_BYTES, &text, e))
		return NULL;
	m = matrix_from(text.data, text.len, path, e);
	buf_free(&text);
	return m;
}

struct matrix *matrix_head(const struct matrix *m, unsigned n)
{
	struct matrix *head = matrix_new(n, m->row[n]);
	size_t arcs = 0;

	if (!head)
		return NULL;
	for (unsigned r = 0; r < n; r++) {
		for (size_t i = m->row[r]; i < m->row[r + 1] && m->adj[i] < n; i++) {
			head->adj[arcs] = m->adj[i];
			head->weight[arcs++] = m->weight[i];
		}
		head->row[r + 1] = arcs;
	}
	return head;
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
