/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/mapping_state.h"

#include <stdlib.h>
#include <string.h>

#include "map/engine/tuning.h"

bool mapping_state_is_worth(const struct matrix *m, const struct slot_level *cells)
{
	return (size_t) m->ranks * cells->n <= COST_TABLE;
}

static void between_fill(struct mapping_state *t)
{
	const unsigned *first = t->cells->first;
	size_t n = t->cells->n;

	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++) {
			unsigned to = a == b && first[a + 1] - first[a] > 1 ? first[a] + 1 : first[b];

			t->between[a * n + b] = slots_distance(t->s, first[a], to);
		}
}

static void row_add(double *restrict row, const double *restrict more, double weight, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		row[i] += weight * more[i];
}

/* Adds to the costs of the rank's partners what its presence in a cell costs them, given by cell. */
static void partners_add(struct mapping_state *t, unsigned rank, const double *more)
{
	const struct matrix *m = t->m;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		row_add(&t->cost[(size_t) m->adj[i] * t->cells->n], more, m->weight[i], t->cells->n);
	t->work += (m->row[rank + 1] - m->row[rank]) * (1 + t->cells->n / CELLS_AN_EDGE);
}

int mapping_state_init(struct mapping_state *t, const struct matrix *m, const struct slots *s,
		       const struct slot_level *cells, const unsigned *slot)
{
	size_t n = cells->n;

	*t = (struct mapping_state){ .m = m, .s = s, .cells = cells };
	t->at = malloc(m->ranks * sizeof(*t->at));
	t->rank = malloc(s->n * sizeof(*t->rank));
	t->between = malloc(n * n * sizeof(*t->between));
	t->change = malloc(n * sizeof(*t->change));
	t->cost = calloc(m->ranks * n, sizeof(*t->cost));
	if (!t->at || !t->rank || !t->between || !t->change || !t->cost)
		return -1;
	between_fill(t);
	memcpy(t->at, slot, m->ranks * sizeof(*slot));
	memset(t->rank, 0xff, s->n * sizeof(*t->rank));
	for (unsigned r = 0; r < m->ranks; r++) {
		t->rank[slot[r]] = r;
		partners_add(t, r, &t->between[cells->of[slot[r]] * n]);
	}
	return 0;
}

void mapping_state_free(struct mapping_state *t)
{
	free(t->at);
	free(t->rank);
	free(t->between);
	free(t->change);
	free(t->cost);
}

static double weight_between(const struct matrix *m, unsigned a, unsigned b)
{
	size_t low = m->row[a], high = m->row[a + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->adj[middle] == b)
			return m->weight[middle];
		if (m->adj[middle] < b)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* The table assumes that a rank's partner stays: corrects for two partners that exchange places. */
double mapping_state_change(struct mapping_state *t, unsigned a, unsigned b, double limit)
{
	unsigned x = t->rank[a], y = t->rank[b], n = t->cells->n;
	size_t own = t->cells->of[a], other = t->cells->of[b];
	double change;

	t->work++;
	if (own == other)
		return 0;
	change = mapping_state_costs_more(t, a, b) + mapping_state_costs_more(t, b, a);
	if (change >= limit || x == SLOT_NONE || y == SLOT_NONE)
		return change;
	return change + weight_between(t->m, x, y) *
		(2 * t->between[own * n + other] - t->between[own * n + own] - t->between[other * n + other]);
}

static void rank_move(struct mapping_state *t, unsigned rank, unsigned to)
{
	size_t n = t->cells->n;
	const double *old = &t->between[t->cells->of[t->at[rank]] * n], *new = &t->between[t->cells->of[to] * n];

	for (unsigned c = 0; c < n; c++)
		t->change[c] = new[c] - old[c];
	partners_add(t, rank, t->change);
	t->at[rank] = to;
}

void mapping_state_swap(struct mapping_state *t, unsigned a, unsigned b)
{
	unsigned x = t->rank[a], y = t->rank[b];

	if (x != SLOT_NONE)
		rank_move(t, x, b);
	if (y != SLOT_NONE)
		rank_move(t, y, a);
	t->rank[a] = y;
	t->rank[b] = x;
}
