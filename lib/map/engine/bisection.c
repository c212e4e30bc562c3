/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/bisection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/slots.h"

/* Exchanges without gain after which a pass ends; number of repetitions. */
#define METROPOLIS_STEPS 8
#define PASSES 12
/* Ranks in a block of gain_buckets. */
#define BLOCK 16
#define WAYS 4
/* Differences below this share of the total weight are treated as rounding errors. */
#define ROUNDING 1e-12
/* The cost of updating a partner in the buckets, and of a rank, in edge evaluations. */
#define ARC_WORK 4
#define RANK_WORK 8

static int alloc_all(struct bisection *h, size_t arcs)
{
	size_t n = h->n, slots;

	h->blocks = h->n / BLOCK + 1;
	slots = (size_t) h->blocks * BLOCK;
	h->row = malloc((n + 1) * sizeof(*h->row));
	h->adj = malloc((arcs + 1) * sizeof(*h->adj));
	h->weight = malloc((arcs + 1) * sizeof(*h->weight));
	h->bias = calloc(2 * n + 1, sizeof(*h->bias));
	h->second = calloc(2 * n + 1, sizeof(*h->second));
	h->swapped = malloc(2 * n * sizeof(*h->swapped));
	h->buckets[0].gain = malloc(2 * (slots + h->blocks) * sizeof(double));
	h->buckets[0].stale = malloc(2 * (size_t) h->blocks);
	if (!h->row || !h->adj || !h->weight || !h->bias || !h->second || !h->swapped || !h->buckets[0].gain ||
	    !h->buckets[0].stale)
		return -1;
	h->gain = h->bias + n;
	h->locked = h->second + n;
	h->buckets[1].gain = h->buckets[0].gain + slots;
	h->buckets[0].most = h->buckets[1].gain + slots;
	h->buckets[1].most = h->buckets[0].most + h->blocks;
	h->buckets[1].stale = h->buckets[0].stale + h->blocks;
	return 0;
}

int bisection_init(struct bisection *h, const struct matrix *m, const struct matrix_ranks *some, unsigned empty)
{
	size_t arcs = 0;

	*h = (struct bisection){ .n = some->n + empty, .ranks = some->n };
	for (unsigned i = 0; i < h->ranks; i++)
		arcs += m->row[some->rank[i] + 1] - m->row[some->rank[i]];
	if (alloc_all(h, arcs))
		return -1;
	arcs = 0;
	for (unsigned i = 0; i < h->ranks; i++) {
		h->row[i] = arcs;
		for (size_t a = m->row[some->rank[i]]; a < m->row[some->rank[i] + 1]; a++)
			if (some->local[m->adj[a]] < h->ranks) {
				h->adj[arcs] = some->local[m->adj[a]];
				h->grain += ROUNDING * m->weight[a];
				h->weight[arcs++] = m->weight[a];
			}
	}
	for (unsigned i = h->ranks; i <= h->n; i++)
		h->row[i] = arcs;
	return 0;
}

void bisection_free(struct bisection *h)
{
	free(h->row);
	free(h->adj);
	free(h->weight);
	free(h->bias);
	free(h->second);
	free(h->swapped);
	free(h->buckets[0].gain);
	free(h->buckets[0].stale);
}

double bisection_cut(struct bisection *h)
{
	double between = 0, pulled = 0;

	h->work += 2 * h->row[h->n] + (unsigned long long) RANK_WORK * h->n;
	for (unsigned i = 0; i < h->n; i++) {
		double own = 0, other = 0;

		for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
			*(h->second[i] == h->second[h->adj[a]] ? &own : &other) += h->weight[a];
		h->gain[i] = other - own + (h->second[i] ? h->bias[i] : -h->bias[i]);
		between += other;
		pulled += h->second[i] ? h->bias[i] : 0;
	}
	return between / 2 + pulled;
}

static double block_most(const double *gain)
{
	double most[WAYS] = { gain[0], gain[1], gain[2], gain[3] };

	for (unsigned i = WAYS; i < BLOCK; i += WAYS)
		for (unsigned k = 0; k < WAYS; k++)
			most[k] = gain[i + k] > most[k] ? gain[i + k] : most[k];
	for (unsigned k = 1; k < WAYS; k++)
		most[0] = most[k] > most[0] ? most[k] : most[0];
	return most[0];
}

/* The first of the ranks with the largest gain. */
static unsigned best_gain(struct bisection *h, unsigned half)
{
	struct bisection_buckets *c = &h->buckets[half];
	unsigned won = 0, i;

	for (unsigned b = 0; b < h->blocks; b++) {
		if (c->stale[b])
			c->most[b] = block_most(&c->gain[b * BLOCK]);
		c->stale[b] = false;
		if (c->most[b] > c->most[won])
			won = b;
	}
	for (i = won * BLOCK; i + 1 < h->n && c->gain[i] != c->most[won];)
		i++;
	return i;
}

static void gain_enter(struct bisection *h, unsigned i)
{
	struct bisection_buckets *c = &h->buckets[h->second[i]];

	c->gain[i] = h->locked[i] ? -INFINITY : h->gain[i];
	c->stale[i / BLOCK] = true;
}

/* Unlocks all ranks. Returns the number of pairs. */
static unsigned pairs_begin(struct bisection *h)
{
	unsigned second = 0;

	for (unsigned half = 0; half < 2; half++) {
		for (unsigned i = 0; i < h->blocks * BLOCK; i++)
			h->buckets[half].gain[i] = -INFINITY;
		memset(h->buckets[half].stale, true, h->blocks);
	}
	memset(h->locked, 0, h->n * sizeof(*h->locked));
	for (unsigned i = 0; i < h->n; i++) {
		gain_enter(h, i);
		second += h->second[i];
	}
	h->work += 4 * (unsigned long long) h->n;
	return second < h->n - second ? second : h->n - second;
}

static void change_sides(struct bisection *h, unsigned i)
{
	h->second[i] = !h->second[i];
	h->gain[i] = -h->gain[i];
	for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
		h->gain[h->adj[a]] += h->second[h->adj[a]] == h->second[i] ? -2 * h->weight[a] : 2 * h->weight[a];
	h->work += h->row[i + 1] - h->row[i];
}

/* Moves the rank and locks it. */
static double rank_move(struct bisection *h, unsigned i)
{
	double gain = h->gain[i];

	h->locked[i] = true;
	gain_enter(h, i);
	change_sides(h, i);
	for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
		gain_enter(h, h->adj[a]);
	h->work += ARC_WORK * (h->row[i + 1] - h->row[i]) + h->blocks + RANK_WORK;
	return gain;
}

double bisection_exchange(struct bisection *h)
{
	unsigned pairs = pairs_begin(h), done = 0, keep = 0;
	double sum = 0, most = 0;

	for (; done < keep + METROPOLIS_STEPS && done < pairs; done++) {
		for (unsigned half = 0; half < 2; half++) {
			h->swapped[2 * done + half] = best_gain(h, half);
			sum += rank_move(h, h->swapped[2 * done + half]);
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

	for (unsigned i = 0; i < PASSES; i++) {
		all += less = bisection_exchange(h);
		if (less <= 0)
			break;
	}
	return all;
}
