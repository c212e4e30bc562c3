/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/spectral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/tuning.h"

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

static void vector_normalise(const struct spectral_graph *w, double *x)
{
	double sum = 0, by;

	for (unsigned i = 0; i < w->n; i++)
		sum += w->mass[i] * x[i] * x[i];
	by = sum > 0 ? 1 / sqrt(sum) : 1;
	for (unsigned i = 0; i < w->n; i++)
		x[i] *= by;
}

/* Moves each value half-way to the weighted mean of its neighbours. */
static void vector_smooth(const struct spectral_graph *w, double *x, double *next)
{
	for (unsigned i = 0; i < w->n; i++) {
		double sum = 0, all = 0;

		for (size_t a = w->row[i]; a < w->row[i + 1]; a++) {
			sum += w->weight[a] * x[w->adj[a]];
			all += w->weight[a];
		}
		next[i] = all > 0 ? (x[i] + sum / all) / 2 : 0;
	}
	memcpy(x, next, w->n * sizeof(*x));
}

static int smooth_all(const struct spectral_graph *w, unsigned times, double *const mode[MODES],
		      unsigned long long *work)
{
	double *next = malloc((w->n + 1) * sizeof(*next));

	if (!next)
		return -1;
	for (unsigned t = 0; t < times; t++)
		for (unsigned k = 0; k < MODES; k++) {
			vector_smooth(w, mode[k], next);
			vector_project(w, mode[k], NULL);
			for (unsigned j = 0; j < k; j++)
				vector_project(w, mode[k], mode[j]);
			vector_normalise(w, mode[k]);
		}
	*work += MODES * times * (w->row[w->n] + WORK_VALUE * (unsigned long long) w->n);
	free(next);
	return 0;
}

static int modes_draw(const struct spectral_graph *w, uint64_t *chance, double *const mode[MODES],
		      unsigned long long *work)
{
	for (unsigned k = 0; k < MODES; k++)
		for (unsigned i = 0; i < w->n; i++)
			mode[k][i] = 2 * draw_unit(chance) - 1;
	return smooth_all(w, SMOOTH_DRAWN, mode, work);
}

/* A coarser graph, and the coarse vertex of each vertex. */
struct coarser {
	struct spectral_graph w;
	unsigned *into;
	unsigned (*of)[2];		/* the one or two vertices that each was contracted from; NOBODY: only one */
	size_t *seen;			/* by coarse vertex: 1 + the arc to it; outside the current row: none */
	double *mode[MODES];
};

static int coarser_alloc(struct coarser *c, const struct spectral_graph *w)
{
	size_t arcs = w->row[w->n] + 1, n = w->n + 1;

	c->into = malloc(n * sizeof(*c->into));
	c->of = malloc(n * sizeof(*c->of));
	c->seen = calloc(n, sizeof(*c->seen));
	c->mode[0] = malloc(MODES * n * sizeof(double));
	c->w.row = malloc((n + 1) * sizeof(*c->w.row));
	c->w.adj = malloc(arcs * sizeof(*c->w.adj));
	c->w.weight = malloc(arcs * sizeof(*c->w.weight));
	c->w.mass = malloc(n * sizeof(*c->w.mass));
	if (!c->into || !c->of || !c->seen || !c->mode[0] || !c->w.row || !c->w.adj || !c->w.weight || !c->w.mass)
		return -1;
	for (unsigned k = 1; k < MODES; k++)
		c->mode[k] = c->mode[0] + k * n;
	return 0;
}

static void coarser_free(struct coarser *c)
{
	free(c->into);
	free(c->of);
	free(c->seen);
	free(c->mode[0]);
	free(c->w.row);
	free(c->w.adj);
	free(c->w.weight);
	free(c->w.mass);
}

/* The unmatched neighbour with the largest share of the communication of both. */
static unsigned partner_of(const struct spectral_graph *w, const unsigned *into, unsigned i)
{
	unsigned best = NOBODY;
	double most = 0;

	for (size_t a = w->row[i]; a < w->row[i + 1]; a++) {
		unsigned other = w->adj[a];
		double part = w->weight[a] / w->mass[other];

		if (into[other] == NOBODY && other != i && part > most) {
			most = part;
			best = other;
		}
	}
	return best;
}

/* Matches vertices one after another, beginning at a random one. */
static void pair_up(struct coarser *c, const struct spectral_graph *w, uint64_t *chance)
{
	unsigned start = draw_below(chance, w->n);

	memset(c->into, 0xff, w->n * sizeof(*c->into));
	for (unsigned k = 0; k < w->n; k++) {
		unsigned i = (start + k) % w->n, partner;

		if (c->into[i] != NOBODY)
			continue;
		partner = partner_of(w, c->into, i);
		c->into[i] = c->w.n;
		if (partner != NOBODY)
			c->into[partner] = c->w.n;
		c->of[c->w.n][0] = i;
		c->of[c->w.n++][1] = partner;
	}
}

static void arcs_carry(struct coarser *c, const struct spectral_graph *w, unsigned k, unsigned i)
{
	struct spectral_graph *to = &c->w;

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

static void graph_contract(struct coarser *c, const struct spectral_graph *w)
{
	c->w.row[0] = 0;
	for (unsigned k = 0; k < c->w.n; k++) {
		c->w.row[k + 1] = c->w.row[k];
		c->w.mass[k] = 0;
		for (unsigned j = 0; j < 2 && c->of[k][j] != NOBODY; j++) {
			c->w.mass[k] += w->mass[c->of[k][j]];
			arcs_carry(c, w, k, c->of[k][j]);
		}
	}
}

/* Returns 1 if the graph hardly became smaller. */
static int modes_from_coarser(struct coarser *c, const struct spectral_graph *w, uint64_t *chance,
			      double *const mode[MODES], unsigned long long *work)
{
	if (coarser_alloc(c, w))
		return -1;
	pair_up(c, w, chance);
	*work += WORK_MATCH * w->row[w->n];
	if (c->w.n > CONTRACT_LEFT * w->n)
		return 1;
	graph_contract(c, w);
	if (spectral_modes(&c->w, chance, c->mode, work))
		return -1;
	for (unsigned k = 0; k < MODES; k++)
		for (unsigned i = 0; i < w->n; i++)
			mode[k][i] = c->mode[k][c->into[i]];
	return smooth_all(w, SMOOTH_CONTRACTED, mode, work);
}

int spectral_modes(const struct spectral_graph *w, uint64_t *chance, double *const mode[MODES],
		   unsigned long long *work)
{
	struct coarser c = { .into = NULL };
	int rc = w->n > CONTRACT_FEW ? modes_from_coarser(&c, w, chance, mode, work) : 1;

	coarser_free(&c);
	return rc > 0 ? modes_draw(w, chance, mode, work) : rc;
}
