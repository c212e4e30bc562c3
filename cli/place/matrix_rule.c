/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "matrix_rule.h"

#include <math.h>

#include "map/matrix/draw.h"
#include "map/matrix/pattern.h"

/* Blocks of 64 cells a side and 8 bytes a cell: what neighbours exchange each way across a face, an edge, a corner. */
#define CELLS 64.0
#define CELL_BYTES 8.0
#define TRANSPOSE_BYTES 1048576.0
#define RING_BYTES 1024.0
#define MEAN_NEIGHBOURS 8
#define LINKS 4u

struct rule {
	struct pattern pattern;
	unsigned points;		/* of a stencil */
	uint64_t seed;
	struct matrix_entries found;	/* of what is drawn */
};

static double draw_bytes(uint64_t *seed)
{
	return 1 + draw_bits(seed) % 1024;
}

/* Neighbours by faces, or in all directions. */
static int stencil_make(struct rule *g)
{
	struct pattern *p = &g->pattern;
	unsigned centre = 0;

	for (unsigned d = 0; d < p->sides; d++)
		centre = 3 * centre + 1;
	for (unsigned step = 0; step <= 2 * centre; step++) {
		unsigned away = 0, digits = step;
		double each_way = CELL_BYTES;

		for (unsigned d = 0; d < p->sides; d++, digits /= 3) {
			away += digits % 3 != 1;
			each_way *= digits % 3 == 1 ? CELLS : 1;
		}
		p->weight[step] = away > 1 && g->points <= 2 * p->sides + 1 ? 0 : 2 * each_way;
	}
	return 0;
}

/* All-to-all within a row, then within a column. */
static int pencils_make(struct rule *g)
{
	struct pattern *p = &g->pattern;

	p->kind = PATTERN_LINES;
	for (unsigned d = 0; d < p->sides; d++)
		p->weight[d] = 2 * TRANSPOSE_BYTES / p->side[d];
	return 0;
}

static int ring_make(struct rule *g)
{
	g->pattern.periodic[0] = true;
	g->pattern.weight[0] = g->pattern.weight[2] = 2 * RING_BYTES;
	return 0;
}

/*
 * The points of a square, sorted into cells as wide as the reach, so that partners are in the same or a neighbouring
 * cell.
 */
struct square {
	double *x, *y, reach;
	unsigned cells, *first, *next;	/* first[cell], next[rank]; ranks: end */
};

static unsigned cell_of(const struct square *q, double v)
{
	unsigned c = v * q->cells;

	return c < q->cells ? c : q->cells - 1;
}

static int square_fill(struct rule *g, struct square *q)
{
	for (unsigned c = 0; c < q->cells * q->cells; c++)
		q->first[c] = g->pattern.ranks;
	for (unsigned r = 0; r < g->pattern.ranks; r++) {
		unsigned cx, cy;

		q->x[r] = draw_unit(&g->seed);
		q->y[r] = draw_unit(&g->seed);
		cx = cell_of(q, q->x[r]);
		cy = cell_of(q, q->y[r]);
		for (unsigned y = cy ? cy - 1 : 0; y <= cy + 1 && y < q->cells; y++)
			for (unsigned x = cx ? cx - 1 : 0; x <= cx + 1 && x < q->cells; x++)
				for (unsigned to = q->first[y * q->cells + x]; to < g->pattern.ranks; to = q->next[to])
					if (to < r && hypot(q->x[to] - q->x[r], q->y[to] - q->y[r]) <= q->reach &&
					    matrix_entries_add(&g->found, r, to, draw_bytes(&g->seed)))
						return -1;
		q->next[r] = q->first[cy * q->cells + cx];
		q->first[cy * q->cells + cx] = r;
	}
	return 0;
}

static int random_make(struct rule *g)
{
	struct square q = { .reach = sqrt(MEAN_NEIGHBOURS / (M_PI * g->pattern.ranks)) };
	int rc = -1;

	q.cells = q.reach < 1 ? floor(1 / q.reach) : 1;
	q.x = malloc(g->pattern.ranks * sizeof(*q.x));
	q.y = malloc(g->pattern.ranks * sizeof(*q.y));
	q.first = malloc(q.cells * q.cells * sizeof(*q.first));
	q.next = malloc(g->pattern.ranks * sizeof(*q.next));
	if (q.x && q.y && q.first && q.next)
		rc = square_fill(g, &q);
	free(q.x);
	free(q.y);
	free(q.first);
	free(q.next);
	return rc;
}

/* Each new rank links to ends of earlier links, so that ranks with many links get more. */
static int powerlaw_make(struct rule *g)
{
	unsigned *ends = malloc(2 * LINKS * g->pattern.ranks * sizeof(*ends));
	size_t n = 0;
	int rc = ends ? 0 : -1;

	for (unsigned r = 1; r < g->pattern.ranks && !rc; r++)
		for (unsigned i = 0; i < LINKS && i < r && !rc; i++) {
			unsigned to = n ? ends[draw_bits(&g->seed) % n] : 0;

			if (to == r)
				continue;
			rc = matrix_entries_add(&g->found, r, to, draw_bytes(&g->seed));
			ends[n++] = to;
			ends[n++] = r;
		}
	free(ends);
	return rc;
}

static const struct kind {
	const char *name;
	unsigned sides, points[2];	/* the first is the default; 0: none */
	int (*make)(struct rule *g);
} kinds[] = {
	{ "stencil2d", 2, { 5, 9 }, stencil_make },
	{ "stencil3d", 3, { 7, 27 }, stencil_make },
	{ "pencils", 2, { 0, 0 }, pencils_make },
	{ "ring", 1, { 0, 0 }, ring_make },
	{ "random", 1, { 0, 0 }, random_make },
	{ "powerlaw", 1, { 0, 0 }, powerlaw_make },
};

static const struct kind *kind_named(const char *rule)
{
	size_t len = strcspn(rule, ":");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strlen(kinds[i].name) == len && !memcmp(kinds[i].name, rule, len))
			return &kinds[i];
	return NULL;
}

/* Parses "8x8" and the like; returns what follows, or NULL. */
static const char *sides_read(const char *at, const struct kind *k, struct rule *g)
{
	struct pattern *p = &g->pattern;

	p->ranks = 1;
	for (p->sides = 0; p->sides < k->sides; p->sides++) {
		unsigned *side = &p->side[p->sides];
		int used = 0;

		if (p->sides && *at++ != 'x')
			return NULL;
		if (*at < '0' || *at > '9' || sscanf(at, "%9u%n", side, &used) != 1)
			return NULL;
		if (!*side || *side > MATRIX_MAX_RANKS / p->ranks)
			return NULL;
		p->ranks *= *side;
		at += used;
	}
	return at;
}

static int rule_read(const char *text, const struct kind *k, struct rule *g)
{
	const char *at = text + strlen(k->name);
	int used = 0;

	if (*at++ != ':' || !(at = sides_read(at, k, g)))
		return -1;
	g->points = k->points[0];
	if (!*at)
		return 0;
	if (!g->points || sscanf(at, ":%3u%n", &g->points, &used) != 1 || at[used])
		return -1;
	return g->points == k->points[0] || g->points == k->points[1] ? 0 : -1;
}

struct matrix *matrix_rule_make(const char *rule, uint64_t seed, struct err *e)
{
	const struct kind *k = kind_named(rule);
	struct rule g = { .seed = seed };
	struct matrix *m = NULL;

	if (!k || rule_read(rule, k, &g))
		err_set(e, "%.200s: unknown rule; expected stencil2d:XxY[:5|9], stencil3d:XxYxZ[:7|27], pencils:XxY,"
			" ring:N, random:N or powerlaw:N, of at most %u ranks", rule, MATRIX_MAX_RANKS);
	else if (k->make(&g) || !(m = g.found.n ? matrix_build(g.pattern.ranks, &g.found) : pattern_matrix(&g.pattern)))
		err_set(e, "%s: out of memory", rule);
	free(g.found.entry);
	return m;
}
