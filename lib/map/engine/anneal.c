/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/anneal.h"

#include <math.h>

#include "map/engine/split.h"
#include "map/engine/tuning.h"
#include "map/matrix/draw.h"

/* --- a mapping while it changes --- */

/* Whether the table is small enough to be worth its updates. */
static bool mapping_state_is_worth(const struct matrix *m, const struct slot_level *cells)
{
	return (size_t) m->ranks * cells->n <= COST_TABLE;
}

/* Adds to the costs of the rank's partners what its presence in a cell costs them, given by cell. */
static void partners_add(struct mapping_state *t, unsigned rank, const double *restrict more)
{
	const struct matrix *m = t->m;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++) {
		double *restrict row = &t->cost[(size_t) m->adj[i] * t->cells->n], weight = m->weight[i];

		for (unsigned c = 0; c < t->cells->n; c++)
			row[c] += weight * more[c];
	}
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
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++) {
			const unsigned *first = cells->first;
			unsigned to = a == b && first[a + 1] - first[a] > 1 ? first[a] + 1 : first[b];

			t->between[a * n + b] = slots_distance(s, first[a], to);
		}
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

/* --- the quotient graph --- */

int quotient_init(struct quotient *c, const struct matrix *m, const struct slots *s, unsigned level,
		  const unsigned *slot)
{
	const struct slot_level *t = &s->level[level];
	unsigned *domain = malloc((m->ranks + 1) * sizeof(*domain));

	*c = (struct quotient){ .domains = t };
	for (unsigned r = 0; domain && r < m->ranks; r++)
		domain[r] = t->of[slot[r]];
	if (domain)
		c->m = matrix_contract(m, domain, t->n);
	free(domain);
	c->s = (struct slots){ .n = t->n, .shape = t->shape, .costs = s->costs, .table = s->table, .rows = s->rows };
	c->s.spot = malloc(t->n * sizeof(*c->s.spot));
	c->slot = malloc(t->n * sizeof(*c->slot));
	if (!c->m || !c->s.spot || !c->slot)
		return -1;
	for (unsigned i = 0; i < t->n; i++) {
		c->s.spot[i] = s->spot[t->first[i]];
		c->s.spot[i].slot = c->slot[i] = i;
	}
	for (; c->s.nlevels <= level; c->s.nlevels++) {	/* the domains of a wider level, as ranges of these */
		const struct slot_level *wide = &s->level[c->s.nlevels];
		struct slot_level *to = &c->s.level[c->s.nlevels];

		*to = *wide;
		to->first = malloc((wide->n + 1) * sizeof(*to->first));
		to->of = malloc(t->n * sizeof(*to->of));
		if (!to->first || !to->of)
			return -1;
		for (unsigned d = 0; d < wide->n; d++)
			to->first[d] = t->of[wide->first[d]];
		to->first[wide->n] = t->n;
		for (unsigned i = 0; i < t->n; i++)
			to->of[i] = wide->of[t->first[i]];
	}
	c->s.cells = &c->s.level[level && s->level[level - 1].is_shaped ? level - 1 : level];
	return 0;
}

void quotient_free(struct quotient *c)
{
	for (unsigned t = 0; t <= c->s.nlevels; t++) {
		free(c->s.level[t].first);
		free(c->s.level[t].of);
	}
	free(c->s.spot);
	matrix_free(c->m);
	free(c->slot);
}

void quotient_apply(const struct quotient *c, unsigned ranks, unsigned *slot)
{
	const struct slot_level *t = c->domains;

	for (unsigned r = 0; r < ranks; r++) {
		unsigned domain = t->of[slot[r]];

		slot[r] += t->first[c->slot[domain]] - t->first[domain];
	}
}

/* --- exchanges --- */

/* The exchanges at one level, whose domains are the slots here. */
struct polish {
	struct mapping_state state;
	double gain;			/* the least gain that counts */
	unsigned long long limit;
};

/* The best exchange of a rank into a cell where it costs less: without a gain for either nothing is gained. */
static bool try_cells(struct polish *p, unsigned rank)
{
	struct mapping_state *t = &p->state;
	const struct slot_level *cells = t->cells;
	const double *cost = t->cost + (size_t) rank * cells->n;
	unsigned own = t->at[rank], best = own;
	double least = -p->gain, present = cost[cells->of[own]];

	t->work += cells->n / CELLS_AN_EDGE + 1;
	for (unsigned c = 0; c < cells->n; c++)
		for (unsigned i = cells->first[c]; i < cells->first[c + 1] && cost[c] < present; i++) {
			double change = slots_alike(t->s, own, i) ? mapping_state_change(t, own, i, least) : 0;

			if (change < least) {
				least = change;
				best = i;
			}
		}
	if (best == own)
		return false;
	mapping_state_swap(t, own, best);
	return true;
}

/* Returns 1 if it became cheaper. */
static int slots_polish(struct polish *p, const struct matrix *m, const struct slots *s, unsigned *slot)
{
	bool gained = true;
	int rc;

	if (!mapping_state_is_worth(m, s->cells))
		return 0;
	rc = mapping_state_init(&p->state, m, s, s->cells, slot);
	while (rc >= 0 && p->state.work < p->limit && gained) {
		gained = false;
		for (unsigned i = 0; i < s->n && p->state.work < p->limit; i++)
			if (p->state.rank[i] != SLOT_NONE)
				gained |= try_cells(p, p->state.rank[i]);
		rc |= gained;
	}
	if (rc > 0)
		memcpy(slot, p->state.at, m->ranks * sizeof(*slot));
	p->limit -= p->state.work < p->limit ? p->state.work : p->limit;
	mapping_state_free(&p->state);
	return rc;
}

int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot)
{
	struct polish p = { .limit = *work, .gain = ROUNDING * slots_cost(m, s, slot) };
	int rc = 0;

	/* Until only the last one that gained is left to try. */
	for (unsigned i = 0, idle = 0; rc >= 0 && p.limit && idle < s->nlevels; i++) {
		unsigned t = i % s->nlevels;

		rc = 0;
		if (t + 1 == s->nlevels) {
			rc = slots_polish(&p, m, s, slot);
		} else if (s->level[t].is_shaped) {	/* whole domains */
			struct quotient c;

			rc = quotient_init(&c, m, s, t, slot);
			if (rc == 0 && (rc = slots_polish(&p, c.m, &c.s, c.slot)) > 0)
				quotient_apply(&c, m->ranks, slot);
			quotient_free(&c);
		}
		idle = rc > 0 ? 1 : idle + 1;
	}
	*work = p.limit;
	return rc < 0 ? -1 : 0;
}

/* --- annealing --- */

struct annealing {
	struct mapping_state state;
	const struct slot_level *cells;
	unsigned *best;			/* by rank: its slot in the cheapest mapping so far */
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

/* Limited like mapping_state_change. */
static struct move move_draw(struct annealing *a, double limit)
{
	unsigned rank = draw_below(&a->chance, a->state.m->ranks), from = a->state.at[rank];
	const struct matrix *m = a->state.m;
	unsigned degree = m->row[rank + 1] - m->row[rank];
	unsigned partner = degree ? m->adj[m->row[rank] + draw_below(&a->chance, degree)] : rank;
	size_t his = a->cells->of[a->state.at[partner]];
	/* A cell near that of the partner. */
	unsigned cell = a->near[his * a->cells->n + a->reach[draw_below(&a->chance, ANNEAL_CHANCES)]];
	struct move v = { from, SLOT_NONE, INFINITY };

	a->state.work += WORK_MOVE;
	if (cell == a->cells->of[from])
		return v;
	/* The slot of the cell whose rank can move to `from` at the least cost, among several adjacent ones. */
	unsigned first = a->cells->first[cell], count = a->cells->first[cell + 1] - first;
	unsigned looks = count < ANNEAL_LOOKS ? count : ANNEAL_LOOKS, at = draw_below(&a->chance, count);
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

/*
 * Anneals with these cells, from a first temperature relative to the average change of a move, and maps anew inside
 * them if they are domains of a level of s that has levels below.
 */
static int cells_anneal(const struct matrix *m, const struct slots *s, const struct slot_level *cells, double warm,
			bool insides, uint64_t seed, unsigned long long work, unsigned *slot, struct err *e)
{
	struct annealing a = { .cells = cells, .chance = seed };
	size_t n = cells->n;
	/* A partner's own cell has no place for a rank if it is a single slot. */
	double there = s->n > n ? ANNEAL_THERE : 0;
	int rc;

	if (m->ranks < 2 || !mapping_state_is_worth(m, cells))
		return 0;
	a.near = malloc(n * n * sizeof(*a.near));
	a.best = malloc(m->ranks * sizeof(*a.best));
	rc = mapping_state_init(&a.state, m, s, cells, slot);
	if (rc || !a.near || !a.best) {
		rc = err_set(e, "mapping: out of memory");
		goto out;
	}
	memcpy(a.best, slot, m->ranks * sizeof(*slot));
	for (size_t c = 0; c < n; c++)
		engine_order(&a.state.between[c * n], n, &a.near[c * n]);
	for (unsigned i = 0; i < ANNEAL_CHANCES; i++) {
		double chance = (i + 0.5) / ANNEAL_CHANCES, far = pow(n, (chance - there) / (1 - there));

		a.chances[i] = -log(chance);
		a.reach[i] = chance < there ? 0 : far < n ? far : n - 1;
	}
	/* A move that is dearer by `more` is accepted with the probability exp(-more / temperature). */
	double change = change_sample(&a), cost = 0, least = 0;	/* relative to the start */

	for (unsigned i = 0; i < ANNEAL_STEPS && change > 0; i++) {
		double warmth = change * warm * pow(ANNEAL_COLD / warm, (double) i / (ANNEAL_STEPS - 1));

		while (a.state.work < work * (i + 1) / ANNEAL_STEPS) {
			double limit = warmth * a.chances[draw_below(&a.chance, ANNEAL_CHANCES)];
			struct move v = move_draw(&a, limit);

			if (v.change >= limit)
				continue;
			mapping_state_swap(&a.state, v.from, v.to);
			cost += v.change;
		}
		if (cost >= least)
			continue;
		least = cost;
		memcpy(a.best, a.state.at, a.state.m->ranks * sizeof(*a.best));
	}
	rc = insides ? split_insides(m, s, cells - s->level, seed, a.best, e) : 0;
	if (rc == 0 && slots_cost(m, s, a.best) < slots_cost(m, s, slot))
		memcpy(slot, a.best, m->ranks * sizeof(*slot));
out:
	mapping_state_free(&a.state);
	free(a.near);
	free(a.best);
	return rc;
}

/* Of the level of the nodes, or the next wider one that is worth it. */
int anneal_nodes(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		 struct err *e)
{
	const struct slot_level *nodes = NULL;

	for (unsigned t = 0; t + 1 < s->nlevels; t++) {
		const struct slot_level *own = &s->level[t];

		if (!own->is_shaped || own->n < 2 || own->n * ANNEAL_SLOTS >= m->ranks ||
		    !mapping_state_is_worth(m, own))
			continue;
		nodes = own;
		if (own->n >= s->hosts)
			break;
	}
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

int anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		   unsigned *slot, struct err *e)
{
	unsigned worth = 0;
	int rc = 0;

	for (unsigned t = 0; t < s->nlevels; t++)
		worth += level_is_worth(&s->level[t]);
	if (worth > ANNEAL_LEVELS)
		worth = ANNEAL_LEVELS;
	for (unsigned t = s->nlevels, done = 0; t-- && done < worth && rc == 0;) {
		struct quotient c;

		if (!level_is_worth(&s->level[t]))
			continue;
		rc = quotient_init(&c, m, s, t, slot) ? err_set(e, "mapping: out of memory") :
			cells_anneal(c.m, &c.s, c.s.cells, ANNEAL_WARM, false, seed + done, work / worth, c.slot, e);
		if (rc == 0)
			quotient_apply(&c, m->ranks, slot);
		quotient_free(&c);
		done++;
	}
	return rc;
}
