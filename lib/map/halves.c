/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/halves.h"

#include <stdlib.h>
#include <string.h>

#include "map/slots.h"

/* So many exchanges that brought nothing end it. So often it is done again. */
#define PATIENCE 40
#define PASSES 12
/* The part of all that is said which is taken for rounding. */
#define ROUNDING 1e-12
/* What it takes to change a partner's place in the tournament, in arcs; and a rank's. */
#define ARC_WORK 6
#define RANK_WORK 8

static int alloc_all(struct halves *h, size_t arcs)
{
	size_t n = h->n;

	for (h->leaves = 1; h->leaves < n; h->leaves *= 2)
		;
	h->row = malloc((n + 1) * sizeof(*h->row));
	h->adj = malloc((arcs + 1) * sizeof(*h->adj));
	h->weight = malloc((arcs + 1) * sizeof(*h->weight));
	h->pull = calloc(2 * n + 1, sizeof(*h->pull));
	h->second = calloc(2 * n + 1, sizeof(*h->second));
	h->swapped = malloc((2 * n + 4 * (size_t) h->leaves) * sizeof(*h->swapped));
	if (!h->row || !h->adj || !h->weight || !h->pull || !h->second || !h->swapped)
		return -1;
	h->gain = h->pull + n;
	h->locked = h->second + n;
	h->tree[0] = h->swapped + 2 * n;
	h->tree[1] = h->tree[0] + 2 * (size_t) h->leaves;
	return 0;
}

int halves_init(struct halves *h, const struct matrix *m, const struct some_ranks *some)
{
	size_t arcs = 0;

	*h = (struct halves){ .n = some->n };
	for (unsigned i = 0; i < h->n; i++)
		arcs += m->row[some->rank[i] + 1] - m->row[some->rank[i]];
	if (alloc_all(h, arcs))
		return -1;
	arcs = 0;
	for (unsigned i = 0; i < h->n; i++) {
		h->row[i] = arcs;
		for (size_t a = m->row[some->rank[i]]; a < m->row[some->rank[i] + 1]; a++)
			if (some->local[m->adj[a]] < h->n) {
				h->adj[arcs] = some->local[m->adj[a]];
				h->grain += ROUNDING * m->weight[a];
				h->weight[arcs++] = m->weight[a];
			}
	}
	h->row[h->n] = arcs;
	return 0;
}

void halves_free(struct halves *h)
{
	free(h->row);
	free(h->adj);
	free(h->weight);
	free(h->pull);
	free(h->second);
	free(h->swapped);
}

double halves_cut(struct halves *h)
{
	double between = 0, pulled = 0;

	h->work += h->row[h->n] + (unsigned long long) RANK_WORK * h->n;
	for (unsigned i = 0; i < h->n; i++) {
		double own = 0, other = 0;

		for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
			*(h->second[i] == h->second[h->adj[a]] ? &own : &other) += h->weight[a];
		h->gain[i] = other - own + (h->second[i] ? h->pull[i] : -h->pull[i]);
		between += other;
		pulled += h->second[i] ? h->pull[i] : 0;
	}
	return between / 2 + pulled;
}

static unsigned better(const struct halves *h, unsigned a, unsigned b)
{
	if (a == SLOT_NONE || b == SLOT_NONE)
		return a == SLOT_NONE ? b : a;
	return h->gain[b] > h->gain[a] ? b : a;
}

/* A tournament in each half among the ranks that are not locked: the one that gains most is at [1]. */
static void contest(struct halves *h)
{
	for (unsigned half = 0; half < 2; half++) {
		unsigned *tree = h->tree[half];

		for (unsigned i = 0; i < h->leaves; i++)
			tree[h->leaves + i] = i < h->n && h->second[i] == half ? i : SLOT_NONE;
		for (unsigned k = h->leaves; --k;)
			tree[k] = better(h, tree[2 * k], tree[2 * k + 1]);
	}
	h->work += 4 * (unsigned long long) h->n;
}

/* A rank gains something else now, or is locked. Where it neither won nor wins nothing changes from there on. */
static void contest_again(struct halves *h, unsigned i)
{
	unsigned *tree = h->tree[h->second[i]], k = i + h->leaves;

	tree[k] = h->locked[i] ? SLOT_NONE : i;
	while (k >>= 1) {
		unsigned won = better(h, tree[2 * k], tree[2 * k + 1]);

		if (won == tree[k] && won != i)
			return;
		tree[k] = won;
	}
}

static void change_sides(struct halves *h, unsigned i)
{
	h->second[i] = !h->second[i];
	h->gain[i] = -h->gain[i];
	for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
		h->gain[h->adj[a]] += h->second[h->adj[a]] == h->second[i] ? -2 * h->weight[a] : 2 * h->weight[a];
	h->work += ARC_WORK * (h->row[i + 1] - h->row[i]) + RANK_WORK;
}

/* The rank is not to move again. */
static double move(struct halves *h, unsigned i)
{
	double gain = h->gain[i];

	h->locked[i] = true;
	contest_again(h, i);
	change_sides(h, i);
	for (size_t a = h->row[i]; a < h->row[i + 1]; a++)
		if (!h->locked[h->adj[a]])
			contest_again(h, h->adj[a]);
	return gain;
}

double halves_exchange(struct halves *h)
{
	unsigned done = 0, keep = 0;
	double sum = 0, most = 0;

	memset(h->locked, 0, h->n * sizeof(*h->locked));
	for (contest(h); done < keep + PATIENCE && h->tree[0][1] != SLOT_NONE && h->tree[1][1] != SLOT_NONE; done++) {
		for (unsigned half = 0; half < 2; half++) {
			h->swapped[2 * done + half] = h->tree[half][1];
			sum += move(h, h->tree[half][1]);
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

double halves_mend(struct halves *h)
{
	double all = 0, less;

	for (unsigned i = 0; i < PASSES; i++) {
		all += less = halves_exchange(h);
		if (less <= 0)
			break;
	}
	return all;
}
