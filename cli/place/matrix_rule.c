/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "matrix_rule.h"

#include <math.h>

#include "map/matrix/draw.h"
#include "map/matrix/matrix.h"

/* Blocks of 64 cells a side and 8 bytes a cell: what neighbours exchange each way across a face, an edge, a corner. */
#define CELLS 64.0
#define CELL_BYTES 8.0
#define TRANSPOSE_BYTES 1048576.0
#define RING_BYTES 1024.0
#define MEAN_NEIGHBOURS 8
#define LINKS 4u

enum { MAX_SIDES = 3 };

struct rule {
	unsigned side[MAX_SIDES], sides;	/* in the order of the text: x first */
	unsigned points;			/* of a stencil */
	unsigned ranks;
	uint64_t seed;
	struct matrix_entries found;
};

static double draw_bytes(uint64_t *seed)
{
	return 1 + draw_bits(seed) % 1024;
}

/*
 * The neighbour of a rank by so many steps (-1, 0, 1) along each side. False outside the grid, which is not periodic.
 */
static bool grid_step(const struct rule *g, unsigned rank, const int *step, unsigned *to)
{
	unsigned stride = 1;

	*to = rank;
	for (unsigned d = 0; d < g->sides; d++) {
		unsigned at = rank / stride % g->side[d];

		if (step[d] < 0 ? at == 0 : step[d] > 0 && at == g->side[d] - 1)
			return false;
		*to += (unsigned) step[d] * stride;
		stride *= g->side[d];
	}
	return true;
}

static int stencil_neighbour(struct rule *g, unsigned rank, unsigned which)
{
	int step[MAX_SIDES] = {0};
	unsigned away = 0, to;
	double each_way = CELL_BYTES;

	for (unsigned d = 0; d < g->sides; d++, which /= 3) {
		step[d] = (int) (which % 3) - 1;
		away += step[d] != 0;
		each_way *= step[d] ? 1 : CELLS;
	}
	if ((away > 1 && g->points <= 2 * g->sides + 1) || !grid_step(g, rank, step, &to) || to <= rank)
		return 0;
	return matrix_entries_add(&g->found, rank, to, 2 * each_way);
}

static int stencil_make(struct rule *g)
{
	unsigned around = g->sides == 2 ? 9 : 27;

	for (unsigned r = 0; r < g->ranks; r++)
		for (unsigned which = 0; which < around; which++)
			if (stencil_neighbour(g, r, which))
				return -1;
	return 0;
}

/* All-to-all within a row, then within a column. */
static int pencils_make(struct rule *g)
{
	unsigned cols = g->side[0], rows = g->side[1];

	for (unsigned r = 0; r < g->ranks; r++) {
		for (unsigned to = r + 1; to % cols; to++)
			if (matrix_entries_add(&g->found, r, to, 2 * TRANSPOSE_BYTES / cols))
				return -1;
		for (unsigned to = r + cols; to < g->ranks; to += cols)
			if (matrix_entries_add(&g->found, r, to, 2 * TRANSPOSE_BYTES / rows))
				return -1;
	}
	return 0;
}

static int ring_make(struct rule *g)
{
	for (unsigned r = 0; r < g->ranks; r++)
		if (matrix_entries_add(&g->found, r, (r + 1) % g->ranks, 2 * RING_BYTES))
			return -1;
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

static int square_link(struct rule *g, const struct square *q, unsigned rank, unsigned cell)
{
	for (unsigned to = q->first[cell]; to < g->ranks; to = q->next[to])
		if (to < rank && hypot(q->x[to] - q->x[rank], q->y[to] - q->y[rank]) <= q->reach &&
		    matrix_entries_add(&g->found, rank, to, draw_bytes(&g->seed)))
			return -1;
	return 0;
}

static int square_fill(struct rule *g, struct square *q)
{
	for (unsigned c = 0; c < q->cells * q->cells; c++)
		q->first[c] = g->ranks;
	for (unsigned r = 0; r < g->ranks; r++) {
		unsigned cx, cy;

		q->x[r] = draw_unit(&g->seed);
		q->y[r] = draw_unit(&g->seed);
		cx = cell_of(q, q->x[r]);
		cy = cell_of(q, q->y[r]);
		for (unsigned y = cy ? cy - 1 : 0; y <= cy + 1 && y < q->cells; y++)
			for (unsigned x = cx ? cx - 1 : 0; x <= cx + 1 && x < q->cells; x++)
				if (square_link(g, q, r, y * q->cells + x))
					return -1;
		q->next[r] = q->first[cy * q->cells + cx];
		q->first[cy * q->cells + cx] = r;
	}
	return 0;
}

static int random_make(struct rule *g)
{
	struct square q = { .reach = sqrt(MEAN_NEIGHBOURS / (M_PI * g->ranks)) };
	int rc = -1;

	q.cells = q.reach < 1 ? floor(1 / q.reach) : 1;
	q.x = malloc(g->ranks * sizeof(*q.x));
	q.y = malloc(g->ranks * sizeof(*q.y));
	q.first = malloc(q.cells * q.cells * sizeof(*q.first));
	q.next = malloc(g->ranks * sizeof(*q.next));
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
	unsigned *ends = malloc(2 * LINKS * g->ranks * sizeof(*ends));
	size_t n = 0;
	int rc = ends ? 0 : -1;

	for (unsigned r = 1; r < g->ranks && !rc; r++)
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
	g->ranks = 1;
	for (g->sides = 0; g->sides < k->sides; g->sides++) {
		unsigned *side = &g->side[g->sides];
		int used = 0;

		if (g->sides && *at++ != 'x')
			return NULL;
		if (*at < '0' || *at > '9' || sscanf(at, "%9u%n", side, &used) != 1)
			return NULL;
		if (!*side || *side > MATRIX_MAX_RANKS / g->ranks)
			return NULL;
		g->ranks *= *side;
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
	else if (k->make(&g) || !(m = matrix_build(g.ranks, &g.found)))
		err_set(e, "%s: out of memory", rule);
	free(g.found.entry);
	return m;
}
