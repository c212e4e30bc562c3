/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/bisection.h"

#include <math.h>

#include "map/engine/slots.h"
#include "map/engine/tuning.h"
#include "map/matrix/draw.h"

/* --- the halves and their gains --- */

int bisection_init(struct bisection *h, const struct matrix *m, const struct matrix_ranks *some, unsigned empty)
{
	size_t n = (size_t) some->n + empty;

	*h = (struct bisection){ .n = n, .ranks = some->n, .m = matrix_some(m, some, empty), .leaves = 1 };
	while (h->leaves < n)
		h->leaves *= 2;
	h->bias = calloc(2 * n + 1, sizeof(*h->bias));
	h->second = calloc(2 * n + 1, sizeof(*h->second));
	h->swapped = malloc((2 * n + 1) * sizeof(*h->swapped));
	h->most[0] = malloc(4 * (size_t) h->leaves * sizeof(double));
	if (!h->m || !h->bias || !h->second || !h->swapped || !h->most[0])
		return -1;
	h->gain = h->bias + n;
	h->locked = h->second + n;
	h->most[1] = h->most[0] + 2 * (size_t) h->leaves;
	for (size_t a = 0; a < h->m->row[n]; a++)
		h->grain += ROUNDING * h->m->weight[a];
	return 0;
}

void bisection_free(struct bisection *h)
{
	matrix_free(h->m);
	free(h->bias);
	free(h->second);
	free(h->swapped);
	free(h->most[0]);
}

double bisection_cut(struct bisection *h)
{
	double between = 0, pulled = 0;

	h->work += 2 * h->m->row[h->n] + (unsigned long long) WORK_VALUE * h->n;
	for (unsigned i = 0; i < h->n; i++) {
		double own = 0, other = 0;

		for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
			*(h->second[i] == h->second[h->m->adj[a]] ? &own : &other) += h->m->weight[a];
		h->gain[i] = other - own + (h->second[i] ? h->bias[i] : -h->bias[i]);
		between += other;
		pulled += h->second[i] ? h->bias[i] : 0;
	}
	return between / 2 + pulled;
}

/* The first of the ranks with the largest gain. */
static unsigned best_gain(const struct bisection *h, unsigned half)
{
	const double *most = h->most[half];
	unsigned at = 1;

	while (at < h->leaves)
		at = 2 * at + (most[2 * at] < most[1]);
	return at - h->leaves;
}

static void gain_enter(struct bisection *h, unsigned i)
{
	double *most = h->most[h->second[i]];
	unsigned at = h->leaves + i;

	most[at] = h->locked[i] ? -INFINITY : h->gain[i];
	while (at /= 2)
		most[at] = most[2 * at] > most[2 * at + 1] ? most[2 * at] : most[2 * at + 1];
}

/* Unlocks all ranks. Returns the number of pairs. */
static unsigned pairs_begin(struct bisection *h)
{
	unsigned second = 0;

	for (size_t i = 0; i < 4 * (size_t) h->leaves; i++)
		h->most[0][i] = -INFINITY;
	memset(h->locked, 0, h->n * sizeof(*h->locked));
	for (unsigned i = 0; i < h->n; i++) {
		h->most[h->second[i]][h->leaves + i] = h->gain[i];
		second += h->second[i];
	}
	for (unsigned at = h->leaves; --at;)
		for (unsigned half = 0; half < 2; half++)
			h->most[half][at] = fmax(h->most[half][2 * at], h->most[half][2 * at + 1]);
	h->work += WORK_GATHER * (unsigned long long) h->n;
	return second < h->n - second ? second : h->n - second;
}

static void change_sides(struct bisection *h, unsigned i)
{
	h->second[i] = !h->second[i];
	h->gain[i] = -h->gain[i];
	for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
		h->gain[h->m->adj[a]] += (h->second[h->m->adj[a]] == h->second[i] ? -2 : 2) * h->m->weight[a];
	h->work += h->m->row[i + 1] - h->m->row[i];
}

double bisection_exchange(struct bisection *h)
{
	unsigned pairs = pairs_begin(h), done = 0, keep = 0;
	double sum = 0, most = 0;

	for (; done < keep + CUT_IDLE && done < pairs; done++) {
		for (unsigned half = 0; half < 2; half++) {
			h->swapped[2 * done + half] = best_gain(h, half);
			/* Moves the rank and locks it. */
			unsigned i = h->swapped[2 * done + half];

			sum += h->gain[i];
			h->locked[i] = true;
			gain_enter(h, i);
			change_sides(h, i);
			for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
				gain_enter(h, h->m->adj[a]);
			h->work += WORK_GATHER * (h->m->row[i + 1] - h->m->row[i]) + h->n / 16 + 1 + WORK_VALUE;
		}
		if (sum <= most + h->grain)
			continue;
		most = sum;
		keep = done + 1;
	}
	while (done-- > keep)
		for (unsigned half = 0; half < 2; half++)
			change_sides(h, h->swapped[2 * done + half]);
	return most;
}

double bisection_refine(struct bisection *h)
{
	double all = 0, less;

	for (unsigned i = 0; i < CUT_PASSES; i++) {
		all += less = bisection_exchange(h);
		if (less <= 0)
			break;
	}
	return all;
}

/* --- eigenvectors --- */

#define NOBODY (~0u)

/* Subtracts from x its component along y, or along the constant vector if y is NULL; vertices weighted by mass. */
static void vector_project(const struct spectral_graph *w, double *x, const double *y)
{
	double both = 0, own = 0;

	for (unsigned i = 0; i < w->n; i++) {
		double at = y ? y[i] : 1;

		both += w->mass[i] * at * x[i];
		own += w->mass[i] * at * at;
	}
	for (unsigned i = 0; i < w->n && own > 0; i++)
		x[i] -= both / own * (y ? y[i] : 1);
}

/* Each round moves each value half-way to the weighted mean of its neighbours. */
static int smooth_all(const struct spectral_graph *w, unsigned times, double *const mode[MODES],
		      unsigned long long *work)
{
	double *next = malloc((w->n + 1) * sizeof(*next));

	if (!next)
		return -1;
	for (unsigned t = 0; t < times; t++)
		for (unsigned k = 0; k < MODES; k++) {
			double *x = mode[k], length = 0, by;

			for (unsigned i = 0; i < w->n; i++) {
				double sum = 0, all = 0;

				for (size_t a = w->row[i]; a < w->row[i + 1]; a++) {
					sum += w->weight[a] * x[w->adj[a]];
					all += w->weight[a];
				}
				next[i] = all > 0 ? (x[i] + sum / all) / 2 : 0;
			}
			memcpy(x, next, w->n * sizeof(*x));
			vector_project(w, x, NULL);
			for (unsigned j = 0; j < k; j++)
				vector_project(w, x, mode[j]);
			for (unsigned i = 0; i < w->n; i++)
				length += w->mass[i] * x[i] * x[i];
			by = length > 0 ? 1 / sqrt(length) : 1;
			for (unsigned i = 0; i < w->n; i++)
				x[i] *= by;
		}
	*work += MODES * times * (w->row[w->n] + WORK_VALUE * (unsigned long long) w->n);
	free(next);
	return 0;
}

/* A coarser graph, and the coarse vertex of each vertex. */
struct coarser {
	struct spectral_graph w;
	unsigned *into;
	unsigned (*of)[2];		/* the one or two vertices that each was contracted from; NOBODY: only one */
	size_t *seen;			/* by coarse vertex: 1 + the arc to it; outside the current row: none */
	double *mode[MODES];
};

/*
 * Matches vertices one after another, beginning at a random one, each with the unmatched neighbour with the largest
 * share of the communication of both.
 */
static void pair_up(struct coarser *c, const struct spectral_graph *w, uint64_t *chance)
{
	unsigned start = draw_below(chance, w->n);

	memset(c->into, 0xff, w->n * sizeof(*c->into));
	for (unsigned k = 0; k < w->n; k++) {
		unsigned i = (start + k) % w->n, partner = NOBODY;
		double most = 0;

		if (c->into[i] != NOBODY)
			continue;
		for (size_t a = w->row[i]; a < w->row[i + 1]; a++) {
			unsigned other = w->adj[a];
			double part = w->weight[a] / w->mass[other];

			if (c->into[other] == NOBODY && other != i && part > most) {
				most = part;
				partner = other;
			}
		}
		c->into[i] = c->w.n;
		if (partner != NOBODY)
			c->into[partner] = c->w.n;
		c->of[c->w.n][0] = i;
		c->of[c->w.n++][1] = partner;
	}
}

static void graph_contract(struct coarser *c, const struct spectral_graph *w)
{
	struct spectral_graph *to = &c->w;

	to->row[0] = 0;
	for (unsigned k = 0; k < to->n; k++) {
		to->row[k + 1] = to->row[k];
		to->mass[k] = 0;
		for (unsigned j = 0; j < 2 && c->of[k][j] != NOBODY; j++) {
			unsigned i = c->of[k][j];

			to->mass[k] += w->mass[i];
			for (size_t a = w->row[i]; a < w->row[i + 1]; a++) {
				unsigned other = c->into[w->adj[a]];

				if (other == k)
					continue;
				if (c->seen[other] <= to->row[k]) {
					to->adj[to->row[k + 1]] = other;
					to->weight[to->row[k + 1]] = 0;
					c->seen[other] = ++to->row[k + 1];
				}
				to->weight[c->seen[other] - 1] += w->weight[a];
			}
		}
	}
}

int spectral_modes(const struct spectral_graph *w, uint64_t *chance, double *const mode[MODES],
		   unsigned long long *work)
{
	size_t arcs = w->row[w->n] + 1, n = (size_t) w->n + 1;
	struct coarser c = { .into = NULL };
	bool smaller = w->n > CONTRACT_FEW;
	int rc = 0;

	if (smaller) {
		c.into = malloc(n * sizeof(*c.into));
		c.of = malloc(n * sizeof(*c.of));
		c.seen = calloc(n, sizeof(*c.seen));
		c.mode[0] = malloc(MODES * n * sizeof(double));
		c.w = (struct spectral_graph){ 0, malloc((n + 1) * sizeof(size_t)), malloc(arcs * sizeof(unsigned)),
					       malloc(arcs * sizeof(double)), malloc(n * sizeof(double)) };
		rc = c.into && c.of && c.seen && c.mode[0] && c.w.row && c.w.adj && c.w.weight && c.w.mass ? 0 : -1;
	}
	if (smaller && rc == 0) {
		for (unsigned k = 1; k < MODES; k++)
			c.mode[k] = c.mode[0] + k * n;
		pair_up(&c, w, chance);
		*work += WORK_MATCH * w->row[w->n];
		smaller = c.w.n <= CONTRACT_LEFT * w->n;
	}
	if (smaller && rc == 0) {
		graph_contract(&c, w);
		rc = spectral_modes(&c.w, chance, c.mode, work);
	}
	for (unsigned k = 0; rc == 0 && k < MODES; k++)
		for (unsigned i = 0; i < w->n; i++)
			mode[k][i] = smaller ? c.mode[k][c.into[i]] : 2 * draw_unit(chance) - 1;
	free(c.into);
	free(c.of);
	free(c.seen);
	free(c.mode[0]);
	free(c.w.row);
	free(c.w.adj);
	free(c.w.weight);
	free(c.w.mass);
	return rc ? rc : smooth_all(w, smaller ? SMOOTH_CONTRACTED : SMOOTH_DRAWN, mode, work);
}

/* --- the search for a cut --- */

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

	engine_order(c->key, n, c->order);
	c->h->work += 2 * c->h->m->row[c->h->n] + WORK_SORT * (unsigned long long) n;
	cut_in_order(c);
	for (unsigned i = 0; i < n / 2; i++) {
		unsigned other = c->order[i];

		c->order[i] = c->order[n - 1 - i];
		c->order[n - 1 - i] = other;
	}
	cut_in_order(c);
}

static int cut_all(struct cutting *c)
{
	struct bisection *h = c->h;
	struct spectral_graph w = { h->ranks, h->m->row, h->m->adj, h->m->weight, c->degree };
	unsigned n = h->n;

	if (spectral_modes(&w, &c->chance, c->mode, &h->work))
		return -1;
	for (unsigned d = 0; d < c->much.directions; d++) {
		double part[MODES];

		for (unsigned k = 0; k < MODES; k++)
			part[k] = d < MODES ? d == k : 2 * draw_unit(&c->chance) - 1;
		for (unsigned i = 0; i < n; i++) {
			c->key[i] = 0;
			for (unsigned k = 0; k < MODES; k++)
				c->key[i] += part[k] * c->mode[k][i];
		}
		cut_by_key(c);
	}
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

	return COMPARE(x->cost, y->cost) ?: COMPARE(x->second, y->second);
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
	size_t n = h->n;

	*c = (struct cutting){ .h = h, .first = first, .much = way.quick ? quick : thorough, .chance = way.seed };
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
		for (size_t a = h->m->row[i]; a < h->m->row[i + 1]; a++)
			c->degree[i] += h->m->weight[a];
	return 0;
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
