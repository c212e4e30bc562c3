/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/bisection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/spectral.h"
#include "map/engine/order.h"
#include "map/engine/tuning.h"

enum { MAX_CUTS = 2 * (CUT_DIRECTIONS + 2) + 1 };

/* Number of directions, the first of which are the eigenvectors themselves; number of cuts that are fully refined. */
static const struct thoroughness {
	unsigned directions, refined;
} thorough = { CUT_DIRECTIONS, CUT_REFINED }, quick = { CUT_QUICK, CUT_QUICK };

struct cut {
	double cost;
	bool *second;		/* by rank */
};

struct cutting {
	struct bisection *h;
	unsigned first;			/* ranks of the first half */
	struct thoroughness much;
	uint64_t chance;
	double *mode[MODES], *degree, *key;
	unsigned *order;
	bool *sides;
	struct cut cut[MAX_CUTS];
	unsigned cuts;
};

static int cutting_init(struct cutting *c)
{
	size_t n = c->h->n;

	c->mode[0] = calloc((MODES + 2) * n + 1, sizeof(double));
	c->order = malloc((n + 1) * sizeof(*c->order));
	c->sides = malloc(MAX_CUTS * n + 1);
	if (!c->mode[0] || !c->order || !c->sides)
		return -1;
	for (unsigned k = 1; k < MODES; k++)
		c->mode[k] = c->mode[0] + k * n;
	c->degree = c->mode[0] + MODES * n;
	c->key = c->degree + n;
	for (unsigned i = 0; i < n; i++)
		for (size_t a = c->h->m->row[i]; a < c->h->m->row[i + 1]; a++)
			c->degree[i] += c->h->m->weight[a];
	return 0;
}

static void cutting_free(struct cutting *c)
{
	free(c->mode[0]);
	free(c->order);
	free(c->sides);
}

/* Records the present halves after a first round of exchanges. */
static void add_cut(struct cutting *c)
{
	struct cut *cut = &c->cut[c->cuts];

	cut->second = c->sides + (size_t) c->cuts++ * c->h->n;
	cut->cost = bisection_cut(c->h) - bisection_exchange(c->h);
	memcpy(cut->second, c->h->second, c->h->n);
}

/* Cuts the ranks in this order, at the point with the smallest cut that the sizes allow. */
static void cut_in_order(struct cutting *c)
{
	struct bisection *h = c->h;
	unsigned empty = h->n - h->ranks, first = c->first - empty;
	double more = 0, least = 0;

	memset(h->second, true, h->n);
	for (unsigned i = 0; i < c->first && i < h->ranks; i++) {
		unsigned rank = c->order[i];

		h->second[rank] = false;
		more -= h->bias[rank];
		for (size_t a = h->m->row[rank]; a < h->m->row[rank + 1]; a++)
			more += h->second[h->m->adj[a]] ? h->m->weight[a] : -h->m->weight[a];
		if (i < first || more < least) {
			least = more;
			first = i < first ? first : i + 1;
		}
	}
	for (unsigned i = first; i < h->ranks; i++)
		h->second[c->order[i]] = true;
	for (unsigned i = 0; i < c->first - first; i++)
		h->second[h->ranks + i] = false;
	add_cut(c);
}

/* Ranks with the smallest keys become the first half, those with the largest the second. */
static void cut_by_key(struct cutting *c)
{
	unsigned n = c->h->ranks;

	order_by(c->key, n, c->order);
	c->h->work += 2 * c->h->m->row[c->h->n] + WORK_SORT * (unsigned long long) n;
	cut_in_order(c);
	for (unsigned i = 0; i < n / 2; i++) {
		unsigned other = c->order[i];

		c->order[i] = c->order[n - 1 - i];
		c->order[n - 1 - i] = other;
	}
	cut_in_order(c);
}

static void cut_along(struct cutting *c, unsigned direction)
{
	double part[MODES];

	for (unsigned k = 0; k < MODES; k++)
		part[k] = direction < MODES ? direction == k : 2 * draw_unit(&c->chance) - 1;
	for (unsigned i = 0; i < c->h->n; i++) {
		c->key[i] = 0;
		for (unsigned k = 0; k < MODES; k++)
			c->key[i] += part[k] * c->mode[k][i];
	}
	cut_by_key(c);
}

static int cut_all(struct cutting *c)
{
	struct bisection *h = c->h;
	struct spectral_graph w = { h->ranks, h->m->row, h->m->adj, h->m->weight, c->degree };
	unsigned n = h->n;

	if (spectral_modes(&w, &c->chance, c->mode, &h->work))
		return -1;
	for (unsigned d = 0; d < c->much.directions; d++)
		cut_along(c, d);
	for (unsigned i = 0; i < n; i++)
		c->key[i] = i;
	cut_by_key(c);
	memcpy(c->key, h->bias, n * sizeof(*c->key));
	cut_by_key(c);
	return 0;
}

static int by_cost(const void *a, const void *b)
{
	const struct cut *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return (x->second > y->second) - (x->second < y->second);
}

/* Fully refines the best cuts; the cheapest is then at [0]. */
static void refine_best(struct cutting *c, double loose)
{
	if (c->cuts > c->much.refined) {
		qsort(c->cut, c->cuts, sizeof(c->cut[0]), by_cost);
		c->cuts = c->much.refined;
	}
	for (unsigned i = 0; i < c->cuts; i++) {
		memcpy(c->h->second, c->cut[i].second, c->h->n);
		c->cut[i].cost = bisection_cut(c->h) - bisection_refine(c->h);
		c->cut[i].cost += fabs(c->cut[i].cost) * loose * draw_unit(&c->chance);
		memcpy(c->cut[i].second, c->h->second, c->h->n);
	}
	qsort(c->cut, c->cuts, sizeof(c->cut[0]), by_cost);
	memcpy(c->h->second, c->cut[0].second, c->h->n);
}

static int cutting_open(struct cutting *c, struct bisection *h, unsigned first, struct bisection_way way)
{
	*c = (struct cutting){ .h = h, .first = first, .much = way.quick ? quick : thorough, .chance = way.seed };
	return cutting_init(c);
}

int bisection_run(struct bisection *h, unsigned first, struct bisection_way way)
{
	struct cutting c;
	int rc = cutting_open(&c, h, first, way);

	if (rc == 0 && (rc = cut_all(&c)) == 0)
		refine_best(&c, way.loose);
	cutting_free(&c);
	return rc;
}

int bisection_again(struct bisection *h, unsigned first, struct bisection_way way)
{
	bool *was = malloc(h->n + 1);
	struct cutting c;
	double cost;
	int rc = cutting_open(&c, h, first, way) || !was ? -1 : 0;

	if (rc == 0) {
		memcpy(was, h->second, h->n);
		cost = bisection_cut(h);
		add_cut(&c);
		rc = cut_all(&c);
	}
	if (rc == 0) {
		refine_best(&c, way.loose);
		rc = c.cut[0].cost < cost - h->grain;
		if (!rc)
			memcpy(h->second, was, h->n);
	}
	cutting_free(&c);
	free(was);
	return rc;
}
