/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/swaps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/quotient.h"
#include "map/engine/mapping_state.h"

/* The number of slots tried on each side of a partner's. */
#define AROUND 16
/* The most passes over all levels; most problems need three or four. */
#define ROUNDS 20
/* Relative to the whole cost. Smaller gains may be rounding errors, which could recur for ever. */
#define LEAST_GAIN 1e-12
/* The number of cells evaluated in the time of one edge. */
#define CELLS_WORK 8

/* The exchanges at one level, whose domains are the slots here. */
struct polish {
	struct mapping_state state;
	unsigned *tried;		/* by slot: the last slot + 1 that it was tried against */
	double gain;			/* the least gain that counts */
	unsigned long long limit;
};

static bool may_exchange(const struct polish *p, unsigned a, unsigned b)
{
	return a != b && slots_alike(p->state.s, a, b);
}

/* The best exchange of a rank into a cell where it costs less: without a gain for either nothing is gained. */
static bool try_cells(struct polish *p, unsigned rank)
{
	struct mapping_state *t = &p->state;
	const struct slot_level *cells = t->s->cells;
	const double *pays = t->costs.pays + (size_t) rank * t->costs.cells;
	unsigned own = t->at[rank].slot, best = own;
	double least = -p->gain;

	t->work += t->costs.cells / CELLS_WORK + 1;
	for (unsigned c = 0; c < t->costs.cells; c++)
		for (unsigned i = cells->first[c]; i < cells->first[c + 1] && pays[c] < t->pays[rank]; i++) {
			double change = may_exchange(p, own, i) ? mapping_state_swap_change(t, own, i, least) : 0;

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

static bool try_around(struct polish *p, unsigned mine, unsigned partner)
{
	struct mapping_state *t = &p->state;
	bool gained = false;

	for (unsigned i = partner > AROUND ? partner - AROUND : 0;
	     i < t->s->n && i <= partner + AROUND && t->work < p->limit; i++) {
		t->work++;
		if (p->tried[i] == mine + 1 || !may_exchange(p, mine, i))
			continue;
		p->tried[i] = mine + 1;
		if (mapping_state_swap_change(t, mine, i, -p->gain) >= -p->gain)
			continue;
		mapping_state_swap(t, mine, i);
		gained = true;
	}
	return gained;
}

/* An exchange may change the rank on the slot. */
static bool try_partners(struct polish *p, unsigned mine)
{
	const struct mapping_state *t = &p->state;
	bool gained = false;

	for (size_t i = 0; t->rank[mine] != SLOT_NONE && i < t->m->row[t->rank[mine] + 1] - t->m->row[t->rank[mine]];
	     i++)
		gained |= try_around(p, mine, t->at[t->m->adj[t->m->row[t->rank[mine]] + i]].slot);
	return gained;
}

static bool try_all(struct polish *p)
{
	bool gained = false;

	memset(p->tried, 0, p->state.s->n * sizeof(*p->tried));
	for (unsigned i = 0; i < p->state.s->n && p->state.work < p->limit; i++)
		if (!p->state.costs.cells)
			gained |= try_partners(p, i);
		else if (p->state.rank[i] != SLOT_NONE)
			gained |= try_cells(p, p->state.rank[i]);
	return gained;
}

/* Returns 1 if it became cheaper. */
static int slots_polish(struct polish *p, const struct matrix *m, const struct slots *s, unsigned *slot)
{
	int rc = mapping_state_init(&p->state, m, s, s->cells, slot);

	p->state.work = m->row[m->ranks] * (1 + p->state.costs.cells / CELLS_WORK);
	while (rc >= 0 && p->state.work < p->limit && try_all(p))
		rc = 1;
	if (rc > 0)
		mapping_state_slots(&p->state, slot);
	p->limit -= p->state.work < p->limit ? p->state.work : p->limit;
	mapping_state_free(&p->state);
	return rc;
}

static int domains_polish(struct polish *p, const struct matrix *m, const struct slots *s, unsigned level,
			  unsigned *slot)
{
	struct quotient c;
	int rc = quotient_init(&c, m, s, level, slot);

	if (rc == 0 && (rc = slots_polish(p, &c.m, &c.s, c.slot)) > 0)
		quotient_apply(&c, m->ranks, slot);
	quotient_free(&c);
	return rc;
}

int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot)
{
	struct polish p = { .limit = *work, .tried = malloc(s->n * sizeof(*p.tried)),
			    .gain = LEAST_GAIN * slots_cost(m, s, slot) };
	unsigned last = s->nlevels - 1;
	int rc = p.tried ? 0 : -1;

	/* Until only the last one that gained is left to try. */
	for (unsigned i = 0, idle = 0; rc >= 0 && p.limit && idle < s->nlevels && i < ROUNDS * s->nlevels; i++) {
		unsigned t = i % s->nlevels;

		rc = t == last			  ? slots_polish(&p, m, s, slot)
			: s->level[t].is_shaped ? domains_polish(&p, m, s, t, slot)
						  : 0;
		idle = rc > 0 ? 1 : idle + 1;
	}
	*work = p.limit;
	free(p.tried);
	return rc < 0 ? -1 : 0;
}
