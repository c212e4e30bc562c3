/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/mapping_state.h"

#include <stdlib.h>
#include <string.h>

/* The number of cells of the cost table updated in the time of one edge evaluation. */
#define CELLS_WORK 8
/* The work of evaluating a rank's move besides its edges. */
#define RANK_WORK 6

int mapping_state_init(struct mapping_state *t, const struct matrix *m, const struct slots *s,
		       const struct slot_level *cells, const unsigned *slot)
{
	*t = (struct mapping_state){ .m = m, .s = s };
	t->at = malloc(m->ranks * sizeof(*t->at));
	t->pays = malloc(m->ranks * sizeof(*t->pays));
	t->rank = malloc(s->n * sizeof(*t->rank));
	if (!t->at || !t->pays || !t->rank)
		return -1;
	memset(t->rank, 0xff, s->n * sizeof(*t->rank));
	for (unsigned r = 0; r < m->ranks; r++) {
		t->at[r] = s->spot[slot[r]];
		t->rank[slot[r]] = r;
	}
	if (domain_costs_is_worth(m, cells) && domain_costs_init(&t->costs, m, s, cells, slot))
		return -1;
	for (unsigned r = 0; r < m->ranks; r++)
		t->pays[r] = t->costs.cells ? domain_costs_pays(&t->costs, r, slot[r]) :
						slots_rank_cost(m, s, slot, r, slot[r]);
	return 0;
}

void mapping_state_free(struct mapping_state *t)
{
	free(t->at);
	free(t->pays);
	free(t->rank);
	domain_costs_free(&t->costs);
}

void mapping_state_slots(const struct mapping_state *t, unsigned *slot)
{
	for (unsigned r = 0; r < t->m->ranks; r++)
		slot[r] = t->at[r].slot;
}

/* The slot of a slot's rank after the ranges are exchanged; SLOT_NONE: it stays. */
static inline unsigned goes_to(unsigned slot, struct slot_range a, struct slot_range b)
{
	if (slot - a.first < a.count)
		return slot - a.first + b.first;
	return slot - b.first < b.count ? slot - b.first + a.first : SLOT_NONE;
}

/* A pair within the ranges is seen from both ends, and counts half at each. */
static inline double rank_change(const struct mapping_state *t, unsigned rank, struct slot_range a, struct slot_range b)
{
	const struct matrix *m = t->m;
	const struct slots *s = t->s;
	const struct slot_place *own = &t->at[rank], *there = &s->spot[own->slot - a.first + b.first];
	size_t end = m->row[rank + 1];
	double sum = 0;

	for (size_t i = m->row[rank]; i < end; i++) {
		const struct slot_place *at = &t->at[m->adj[i]];
		unsigned to = goes_to(at->slot, a, b);

		if (to == SLOT_NONE)
			sum += m->weight[i] * slot_place_distance(s, there, at);
		else
			sum += m->weight[i] *
				(slot_place_distance(s, there, &s->spot[to]) + slot_place_distance(s, own, at)) / 2;
	}
	return sum - t->pays[rank];
}

static inline double run_change(struct mapping_state *t, struct slot_range a, struct slot_range b)
{
	double change = 0;

	for (unsigned at = a.first; at < a.first + a.count; at++) {
		unsigned rank = t->rank[at];

		if (rank == SLOT_NONE)
			continue;
		t->work += t->m->row[rank + 1] - t->m->row[rank] + RANK_WORK;
		change += rank_change(t, rank, a, b);
	}
	return change;
}

double mapping_state_change(struct mapping_state *t, struct slot_range a, struct slot_range b)
{
	return run_change(t, a, b) + run_change(t, b, a);
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

/* The cost table assumes that a rank's partner stays: corrects for two partners that exchange places. */
static double change_by_table(struct mapping_state *t, unsigned a, unsigned b, double limit)
{
	const struct domain_costs *costs = &t->costs;
	unsigned x = t->rank[a], y = t->rank[b], own = costs->cell[a], other = costs->cell[b];
	double change;

	t->work++;
	if (own == other)
		return 0;
	change = mapping_state_pays_more(t, a, b) + mapping_state_pays_more(t, b, a);
	if (change >= limit || x == SLOT_NONE || y == SLOT_NONE)
		return change;
	return change + weight_between(t->m, x, y) *
		(2 * domain_costs_between(costs, own, other) - domain_costs_between(costs, own, own) -
		 domain_costs_between(costs, other, other));
}

double mapping_state_swap_change(struct mapping_state *t, unsigned a, unsigned b, double limit)
{
	struct slot_range own = { a, 1 }, other = { b, 1 };
	double pays = t->rank[b] == SLOT_NONE ? 0 : t->pays[t->rank[b]], change;

	if (t->costs.cells)
		return change_by_table(t, a, b, limit);
	change = run_change(t, own, other);
	return change - pays >= limit ? change - pays : change + run_change(t, other, own);
}

/* While a partner is still on that slot, its distance is 0. */
static double partners_move(struct mapping_state *t, unsigned rank, struct slot_place from, struct slot_place to)
{
	const struct matrix *m = t->m;
	double sum = 0;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++) {
		const struct slot_place *at = &t->at[m->adj[i]];
		double pays = m->weight[i] * slot_place_distance(t->s, &to, at);

		t->pays[m->adj[i]] += pays - m->weight[i] * slot_place_distance(t->s, &from, at);
		sum += pays;
	}
	return sum;
}

static double partners_move_toll(struct mapping_state *t, unsigned rank, unsigned from, unsigned to)
{
	const struct matrix *m = t->m;

	t->work += (m->row[rank + 1] - m->row[rank]) * t->costs.cells / CELLS_WORK;
	domain_costs_move(&t->costs, m, rank, from, to);
	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		t->pays[m->adj[i]] = domain_costs_pays(&t->costs, m->adj[i], t->at[m->adj[i]].slot);
	return domain_costs_pays(&t->costs, rank, to);
}

static void rank_move(struct mapping_state *t, unsigned rank, unsigned to)
{
	struct slot_place from = t->at[rank];

	t->work += t->m->row[rank + 1] - t->m->row[rank];
	t->at[rank] = t->s->spot[to];
	t->pays[rank] =
		t->costs.cells ? partners_move_toll(t, rank, from.slot, to) : partners_move(t, rank, from, t->at[rank]);
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

void mapping_state_exchange(struct mapping_state *t, struct slot_range a, struct slot_range b)
{
	for (unsigned i = 0; i < a.count; i++)
		mapping_state_swap(t, a.first + i, b.first + i);
}
