/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/swaps.h"

#include <stdbool.h>
#include <string.h>

#include "map/engine/quotient.h"
#include "map/engine/mapping_state.h"
#include "map/engine/tuning.h"

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

static bool try_all(struct polish *p)
{
	bool gained = false;

	for (unsigned i = 0; i < p->state.s->n && p->state.work < p->limit; i++)
		if (p->state.rank[i] != SLOT_NONE)
			gained |= try_cells(p, p->state.rank[i]);
	return gained;
}

/* Returns 1 if it became cheaper. */
static int slots_polish(struct polish *p, const struct matrix *m, const struct slots *s, unsigned *slot)
{
	int rc;

	if (!mapping_state_is_worth(m, s->cells))
		return 0;
	rc = mapping_state_init(&p->state, m, s, s->cells, slot);
	while (rc >= 0 && p->state.work < p->limit && try_all(p))
		rc = 1;
	if (rc > 0)
		memcpy(slot, p->state.at, m->ranks * sizeof(*slot));
	p->limit -= p->state.work < p->limit ? p->state.work : p->limit;
	mapping_state_free(&p->state);
	return rc;
}

static int domains_polish(struct polish *p, const struct matrix *m, const struct slots *s, unsigned level,
			  unsigned *slot)
{
	struct quotient c;
	int rc = quotient_init(&c, m, s, level, slot);

	if (rc == 0 && (rc = slots_polish(p, c.m, &c.s, c.slot)) > 0)
		quotient_apply(&c, m->ranks, slot);
	quotient_free(&c);
	return rc;
}

int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot)
{
	struct polish p = { .limit = *work, .gain = ROUNDING * slots_cost(m, s, slot) };
	unsigned last = s->nlevels - 1;
	int rc = 0;

	/* Until only the last one that gained is left to try. */
	for (unsigned i = 0, idle = 0; rc >= 0 && p.limit && idle < s->nlevels; i++) {
		unsigned t = i % s->nlevels;

		rc = t == last			  ? slots_polish(&p, m, s, slot)
			: s->level[t].is_shaped ? domains_polish(&p, m, s, t, slot)
						  : 0;
		idle = rc > 0 ? 1 : idle + 1;
	}
	*work = p.limit;
	return rc < 0 ? -1 : 0;
}
