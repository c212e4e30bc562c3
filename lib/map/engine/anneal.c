/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/anneal.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/mapping_state.h"
#include "map/engine/order.h"
#include "map/engine/quotient.h"
#include "map/engine/split.h"
#include "map/matrix/draw.h"
#include "map/engine/tuning.h"

struct annealing {
	struct mapping_state state;
	const struct slot_level *cells;
	double warm;			/* the first temperature, relative to the average change of a move */
	unsigned *best;			/* by rank: its slot in the cheapest mapping so far */
	double cost, least;		/* of the present mapping and of the best, relative to the start */
	double warmth;			/* the temperature */
	uint64_t chance;
	unsigned *near;			/* near[cell * n ..]: all cells, the nearest to it first */
	unsigned reach[ANNEAL_CHANCES];	/* random indices into that */
	double chances[ANNEAL_CHANCES];	/* -log of a random number: logarithms are slow */
};

/* Two slots; to == SLOT_NONE: no move. */
struct move {
	unsigned from, to;
	double change;
};

/* A partner's own cell has no place for a rank if it is a single slot. */
static void tables_fill(struct annealing *a)
{
	size_t n = a->cells->n;
	double there = a->state.s->n > n ? ANNEAL_THERE : 0;

	for (size_t c = 0; c < n; c++)
		order_by(&a->state.between[c * n], n, &a->near[c * n]);
	for (unsigned i = 0; i < ANNEAL_CHANCES; i++) {
		double chance = (i + 0.5) / ANNEAL_CHANCES, far = pow(n, (chance - there) / (1 - there));

		a->chances[i] = -log(chance);
		a->reach[i] = chance < there ? 0 : far < n ? far : n - 1;
	}
}

static int annealing_init(struct annealing *a, const struct matrix *m, const struct slots *s, const unsigned *slot)
{
	size_t n = a->cells->n;

	a->near = malloc(n * n * sizeof(*a->near));
	a->best = malloc(m->ranks * sizeof(*a->best));
	if (mapping_state_init(&a->state, m, s, a->cells, slot) || !a->near || !a->best)
		return -1;
	memcpy(a->best, slot, m->ranks * sizeof(*slot));
	tables_fill(a);
	return 0;
}

static void annealing_free(struct annealing *a)
{
	mapping_state_free(&a->state);
	free(a->near);
	free(a->best);
}

/* A cell near that of one of the rank's partners. */
static unsigned cell_draw(struct annealing *a, unsigned rank)
{
	const struct matrix *m = a->state.m;
	unsigned degree = m->row[rank + 1] - m->row[rank];
	unsigned partner = degree ? m->adj[m->row[rank] + draw_below(&a->chance, degree)] : rank;
	size_t his = a->cells->of[a->state.at[partner]];

	return a->near[his * a->cells->n + a->reach[draw_below(&a->chance, ANNEAL_CHANCES)]];
}

/* The slot of the cell whose rank can move to `from` at the least cost, among several adjacent ones. */
static struct move move_choose(struct annealing *a, unsigned from, unsigned cell)
{
	unsigned first = a->cells->first[cell], count = a->cells->first[cell + 1] - first;
	unsigned looks = count < ANNEAL_LOOKS ? count : ANNEAL_LOOKS, at = draw_below(&a->chance, count);
	struct move v = { from, SLOT_NONE, INFINITY };
	/* mapping_state_costs_more for each slot; what they share is read once: 5 % of a dense mapping's time. */
	const double *here = a->state.cost + a->cells->of[from], *there = a->state.cost + cell;
	const unsigned *ranks = a->state.rank + first;

	for (unsigned i = 0; i < looks; i++) {
		size_t row = (size_t) ranks[at] * a->cells->n;
		double change = ranks[at] == SLOT_NONE ? 0 : here[row] - there[row];

		if (change < v.change && slots_alike(a->state.s, first + at, from)) {
			v.change = change;
			v.to = first + at;
		}
		if (++at == count)
			at = 0;
	}
	a->state.work += looks;
	return v;
}

/* Limited like mapping_state_change. */
static struct move move_draw(struct annealing *a, double limit)
{
	unsigned rank = draw_below(&a->chance, a->state.m->ranks), from = a->state.at[rank];
	unsigned cell = cell_draw(a, rank);
	struct move v = { from, SLOT_NONE, INFINITY };

	a->state.work += WORK_MOVE;
	if (cell == a->cells->of[from])
		return v;
	v = move_choose(a, from, cell);
	if (v.to == SLOT_NONE)
		return v;
	v.change += mapping_state_costs_more(&a->state, from, v.to);
	if (v.change < limit)
		v.change = mapping_state_change(&a->state, v.from, v.to, limit);
	return v;
}

/* The average absolute change in cost of random moves that change anything. */
static double change_sample(struct annealing *a)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < ANNEAL_SAMPLES; i++) {
		struct move v = move_draw(a, INFINITY);

		if (v.to == SLOT_NONE || v.change == 0)
			continue;
		sum += fabs(v.change);
		n++;
	}
	return n ? sum / n : 0;
}

/* A move that is dearer by `more` is accepted with the probability exp(-more / temperature). */
static void move_try(struct annealing *a)
{
	double limit = a->warmth * a->chances[draw_below(&a->chance, ANNEAL_CHANCES)];
	struct move v = move_draw(a, limit);

	if (v.change >= limit)
		return;
	mapping_state_swap(&a->state, v.from, v.to);
	a->cost += v.change;
}

static void annealing_run(struct annealing *a, unsigned long long work)
{
	double change = change_sample(a);

	for (unsigned i = 0; i < ANNEAL_STEPS && change > 0; i++) {
		a->warmth = change * a->warm * pow(ANNEAL_COLD / a->warm, (double) i / (ANNEAL_STEPS - 1));
		while (a->state.work < work * (i + 1) / ANNEAL_STEPS)
			move_try(a);
		if (a->cost >= a->least)
			continue;
		a->least = a->cost;
		memcpy(a->best, a->state.at, a->state.m->ranks * sizeof(*a->best));
	}
}

/* Anneals with these cells, and maps anew inside them if they are domains of a level of s that has levels below. */
static int cells_anneal(const struct matrix *m, const struct slots *s, const struct slot_level *cells, double warm,
			bool insides, uint64_t seed, unsigned long long work, unsigned *slot, struct err *e)
{
	struct annealing a = { .cells = cells, .warm = warm, .chance = seed };
	int rc = 0;

	if (m->ranks < 2 || !mapping_state_is_worth(m, cells))
		return 0;
	if (annealing_init(&a, m, s, slot)) {
		rc = err_set(e, "mapping: out of memory");
	} else {
		annealing_run(&a, work);
		rc = insides ? split_insides(m, s, cells - s->level, seed, a.best, e) : 0;
	}
	if (rc == 0 && slots_cost(m, s, a.best) < slots_cost(m, s, slot))
		memcpy(slot, a.best, m->ranks * sizeof(*slot));
	annealing_free(&a);
	return rc;
}

/* The level of the nodes, or the next wider one; NULL: not worth it. */
static const struct slot_level *nodes_find(const struct matrix *m, const struct slots *s)
{
	const struct slot_level *found = NULL;

	for (unsigned t = 0; t + 1 < s->nlevels; t++) {
		const struct slot_level *own = &s->level[t];

		if (!own->is_shaped || own->n < 2 || own->n * ANNEAL_SLOTS >= m->ranks ||
		    !mapping_state_is_worth(m, own))
			continue;
		found = own;
		if (own->n >= s->hosts)
			break;
	}
	return found;
}

int anneal_nodes(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		 struct err *e)
{
	const struct slot_level *nodes = nodes_find(m, s);

	return nodes ? cells_anneal(m, s, nodes, ANNEAL_WARM, true, seed, work, slot, e) : 0;
}

int anneal_ranks(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		 struct err *e)
{
	return cells_anneal(m, s, s->cells, ANNEAL_WARM_RANKS, false, seed, work, slot, e);
}

static bool level_is_worth(const struct slot_level *t)
{
	return t->is_shaped && t->n > 1 && t->first[t->n] >= ANNEAL_SLOTS * t->n;
}

static int level_anneal(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed,
			unsigned long long work, unsigned *slot, struct err *e)
{
	struct quotient c;
	int rc = quotient_init(&c, m, s, level, slot) ?
		err_set(e, "mapping: out of memory") :
		cells_anneal(c.m, &c.s, c.s.cells, ANNEAL_WARM, false, seed, work, c.slot, e);

	if (rc == 0)
		quotient_apply(&c, m->ranks, slot);
	quotient_free(&c);
	return rc;
}

int anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		   unsigned *slot, struct err *e)
{
	unsigned worth = 0;
	int rc = 0;

	for (unsigned t = 0; t < s->nlevels; t++)
		worth += level_is_worth(&s->level[t]);
	if (worth > ANNEAL_LEVELS)
		worth = ANNEAL_LEVELS;
	for (unsigned t = s->nlevels, done = 0; t-- && done < worth && rc == 0;)
		if (level_is_worth(&s->level[t])) {
			rc = level_anneal(m, s, t, seed + done, work / worth, slot, e);
			done++;
		}
	return rc;
}
