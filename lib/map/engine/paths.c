/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/paths.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct hierarchy_level *torus_at(const struct places *p, unsigned level)
{
	bool is_torus = p->network && level < p->network->nlevels && p->network->level[level].form == HIERARCHY_TORUS;

	return is_torus ? &p->network->level[level] : NULL;
}

/* The dimension of the largest cost from end to end among those that can be halved; or dims. */
static unsigned longest_side(const struct hierarchy_level *l, const unsigned *from, const unsigned *to)
{
	unsigned best = l->dims;
	double most = 0;

	for (unsigned d = 0; d < l->dims; d++) {
		double length = to[d] - from[d] > 1 ? (to[d] - from[d]) * (l->cost[d] + 1.0) : 0;

		if (length > most) {
			most = length;
			best = d;
		}
	}
	return best;
}

/* The half that a router is in, the half of that, and so on. */
static void torus_cut(const struct hierarchy_level *l, unsigned router, unsigned *number)
{
	unsigned at[HIERARCHY_DIMS], from[HIERARCHY_DIMS] = {0}, to[HIERARCHY_DIMS];

	for (unsigned d = 0; d < l->dims; router /= l->dim[d++]) {
		at[d] = router % l->dim[d];
		to[d] = l->dim[d];
	}
	for (unsigned i = 0; i < PATHS_CUTS; i++) {
		unsigned d = longest_side(l, from, to), middle;

		if (d == l->dims)
			break;
		middle = (from[d] + to[d]) / 2;
		number[i] = at[d] >= middle;
		*(number[i] ? &from[d] : &to[d]) = middle;
	}
}

/* Only the first torus is halved: one below another would have hardly any locality left. */
static int paths_of_places(struct paths *t, const struct places *p)
{
	const struct hierarchy_level *torus = NULL;
	unsigned cut = 0;

	for (unsigned l = 0; l < PLACES_LEVELS; l++) {
		if (!torus && (torus = torus_at(p, l))) {
			cut = t->levels;
			for (unsigned i = 0; i < PATHS_CUTS; i++)
				t->level[t->levels++] = l;
		}
		t->level[t->levels++] = l;
	}
	if (!(t->number = calloc((size_t) p->nplaces * t->levels + 1, sizeof(*t->number))))
		return -1;
	for (unsigned i = 0; i < p->nplaces; i++) {
		unsigned *number = &t->number[(size_t) i * t->levels];

		for (unsigned l = 0; l < t->levels; l++)
			number[l] = p->place[i].path[t->level[l]];
		if (torus) {
			memset(&number[cut], 0, PATHS_CUTS * sizeof(*number));
			torus_cut(torus, p->place[i].path[t->level[cut]], &number[cut]);
		}
	}
	return 0;
}

/* Grows a set of places, always by the one nearest to any in it, and records that distance. Source: Prim, 1957. */
struct growth {
	unsigned *order;
	double *join, *sorted;
};

static void growth_run(struct growth *g, const struct places *p)
{
	unsigned n = p->nplaces;

	for (unsigned i = 0; i < n; i++) {
		g->order[i] = i;
		g->join[i] = INFINITY;
	}
	for (unsigned done = 1; done < n; done++) {
		unsigned next = done, taken = g->order[done - 1];
		double join;

		for (unsigned i = done; i < n; i++) {
			double distance = places_distance(p, taken, g->order[i]);

			if (distance < g->join[i])
				g->join[i] = distance;
			if (g->join[i] < g->join[next] || (g->join[i] == g->join[next] && g->order[i] < g->order[next]))
				next = i;
		}
		join = g->join[next];
		taken = g->order[next];
		g->join[next] = g->join[done];
		g->order[next] = g->order[done];
		g->join[done] = join;
		g->order[done] = taken;
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x < y) - (x > y);
}

/*
 * The distances at which places join, the largest first; a selection if there are more than levels. Places at distance
 * 0 are one.
 */
static unsigned joins_find(struct growth *g, unsigned n)
{
	unsigned found = 0, levels;

	memcpy(g->sorted, g->join, n * sizeof(*g->sorted));
	qsort(g->sorted, n, sizeof(*g->sorted), by_size);
	for (unsigned i = 1; i < n; i++)
		if (g->sorted[i] > 0 && (!found || g->sorted[i] < g->sorted[found - 1]))
			g->sorted[found++] = g->sorted[i];
	levels = found < PATHS_CUTS ? found : PATHS_CUTS;
	for (unsigned l = 1; l <= levels; l++)
		g->sorted[l - 1] = g->sorted[l * (size_t) found / levels - 1];
	return levels;
}

static bool is_tree(const struct paths *t, const struct places *p)
{
	for (unsigned a = 0; a < p->nplaces; a++)
		for (unsigned b = 0; b < a; b++) {
			unsigned l = paths_parted(t, a, b);

			if (places_distance(p, a, b) != (l < t->levels ? t->cost[l] : 0))
				return false;
		}
	return true;
}

static int paths_grown(struct paths *t, const struct places *p, struct growth *g)
{
	unsigned domain[PATHS_CUTS] = {0};

	growth_run(g, p);
	t->levels = joins_find(g, p->nplaces);
	if (!(t->number = calloc((size_t) p->nplaces * t->levels + 1, sizeof(*t->number))))
		return -1;
	for (unsigned l = 0; l < t->levels; l++) {
		t->level[l] = l;
		t->cost[l] = g->sorted[l];
	}
	for (unsigned i = 0; i < p->nplaces; i++)
		for (unsigned l = 0; l < t->levels; l++) {
			domain[l] += i && g->join[i] >= g->sorted[l];
			t->number[(size_t) g->order[i] * t->levels + l] = domain[l];
		}
	t->is_tree = is_tree(t, p);
	return 0;
}

static int paths_of_distances(struct paths *t, const struct places *p)
{
	struct growth g = {
		.order = malloc(p->nplaces * sizeof(*g.order)),
		.join = malloc(p->nplaces * sizeof(*g.join)),
		.sorted = malloc(p->nplaces * sizeof(*g.sorted)),
	};
	int rc = g.order && g.join && g.sorted ? paths_grown(t, p, &g) : -1;

	free(g.order);
	free(g.join);
	free(g.sorted);
	return rc;
}

int paths_find(struct paths *t, const struct places *p)
{
	*t = (struct paths){0};
	return p->distance ? paths_of_distances(t, p) : paths_of_places(t, p);
}

void paths_free(struct paths *t)
{
	free(t->number);
}

unsigned paths_parted(const struct paths *t, unsigned a, unsigned b)
{
	const unsigned *x = &t->number[(size_t) a * t->levels], *y = &t->number[(size_t) b * t->levels];
	unsigned l = 0;

	while (l < t->levels && x[l] == y[l])
		l++;
	return l;
}
