/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/anneal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "map/engine/annealing.h"
#include "map/engine/quotient.h"

/*
 * Temperatures relative to the average change of a move: at SETTLED the assignment to nodes hardly changes any more, at
 * COLD annealing ends.
 */
#define SETTLED 0.03
#define COLD 0.001
/* The share of the work that is used above SETTLED. */
#define SLOW 0.7
/* One in so many units of work is spent on exchanging whole domains. */
#define DOMAIN_PART 8
/* One move in so many goes to a random domain. */
#define ANYWHERE 8
/* The number of additional slots tried in the cell that a rank is to move to. */
#define OTHERS 9
/* The cost of drawing a move, or a slot, and of trying it besides its edges, in edge evaluations. */
#define DRAW_WORK 4
#define MOVE_WORK 12

/*
 * Of domains: the number of levels that are annealed, their least number of domains, and the least average number of
 * slots in each; the first temperature is high, so that much is rearranged.
 */
#define STRATA 3
#define LEAST_DOMAINS 4
#define LEAST_SLOTS 3
#define DOMAIN_WARM 0.5

struct slot_annealing {
	struct annealing a;		/* first */
	double warm;			/* the first temperature, relative to the average change of a move */
	unsigned long long domain_work;	/* work spent on exchanging domains */
};

/* The ranks on two ranges of slots of equal length are exchanged; empty: no move. */
struct move {
	struct slot_range from, to;
};

static unsigned draw_between(struct annealing *a, unsigned first, unsigned end)
{
	return first + draw_below(&a->chance, end - first);
}

/* A random domain of the level within a domain of a wider level. */
static unsigned domain_within(struct annealing *a, const struct slot_level *t, const struct slot_level *wide,
			      unsigned domain)
{
	return draw_between(a, t->of[wide->first[domain]], t->of[wide->first[domain + 1] - 1] + 1);
}

/*
 * A domain of the level nearer to one of the rank's partners: within a wider domain of the partner that the rank is not
 * in; occasionally any. SLOT_NONE: the rank is already as near as that.
 */
static unsigned domain_draw(struct annealing *a, unsigned rank, unsigned level)
{
	const struct matrix *m = a->state.m;
	const struct slot_level *own = &a->state.s->level[level];
	size_t degree = m->row[rank + 1] - m->row[rank];
	unsigned mine = a->state.at[rank].slot, his;

	if (!level || !degree || !draw_below(&a->chance, ANYWHERE))
		return draw_below(&a->chance, own->n);
	his = a->state.at[m->adj[m->row[rank] + draw_below(&a->chance, degree)]].slot;
	for (unsigned t = 0; t < level; t++) {
		const struct slot_level *wide = &a->state.s->level[t += draw_below(&a->chance, level - t)];

		if (wide->of[his] != wide->of[mine])
			return domain_within(a, own, wide, wide->of[his]);
	}
	return SLOT_NONE;
}

/* A random range of as many slots in it. */
static struct slot_range run_draw(struct annealing *a, const struct slot_level *t, unsigned domain, unsigned count)
{
	unsigned first = t->first[domain], end = t->first[domain + 1];

	return (struct slot_range){ count < end - first ? draw_between(a, first, end - count + 1) : first, count };
}

static bool may_exchange(const struct annealing *a, struct slot_range one, struct slot_range other)
{
	for (unsigned i = 0; i < one.count; i++)
		if (!slots_alike(a->state.s, one.first + i, other.first + i))
			return false;
	return true;
}

static struct move move_draw(struct annealing *a, unsigned level)
{
	const struct slot_level *t = &a->state.s->level[level];
	unsigned rank = draw_below(&a->chance, a->state.m->ranks), own = t->of[a->state.at[rank].slot];
	unsigned other = domain_draw(a, rank, level), count, space;
	struct move v;

	if (other == SLOT_NONE || other == own)
		return (struct move){0};
	count = t->first[own + 1] - t->first[own];
	space = t->first[other + 1] - t->first[other];
	if (space < count)
		count = space;
	v = (struct move){ run_draw(a, t, own, count), run_draw(a, t, other, count) };
	return may_exchange(a, v.from, v.to) ? v : (struct move){0};
}

/* As mapping_state_swap_change. */
static double move_change(struct annealing *a, struct move v, double limit)
{
	if (v.from.count > 1)
		return mapping_state_change(&a->state, v.from, v.to);
	return v.from.count ? mapping_state_swap_change(&a->state, v.from.first, v.to.first, limit) : 0;
}

static double move_sample(struct annealing *a)
{
	return move_change(a, move_draw(a, a->state.s->nlevels - 1), INFINITY);
}

/* Moves a rank to the best of some slots of the drawn cell: with the cost table, trying them is cheap. */
static double move_choose(struct annealing *a, struct move *v, double limit)
{
	const struct slot_level *cells = a->state.s->cells;
	unsigned cell = cells->of[v->to.first], first = cells->first[cell], end = cells->first[cell + 1];
	double least = move_change(a, *v, limit);

	if (v->from.count > 1 || !a->state.costs.cells)
		return least;
	for (unsigned i = 0; i < OTHERS && i + 1 < end - first; i++) {
		struct slot_range to = { draw_between(a, first, end), 1 };
		double change = mapping_state_swap_change(&a->state, v->from.first, to.first, limit);

		a->state.work += DRAW_WORK;
		if (change < least && may_exchange(a, v->from, to)) {
			least = change;
			v->to = to;
		}
	}
	return least;
}

static void move_try(struct annealing *a, unsigned level)
{
	struct move v = move_draw(a, level);
	double limit, change;

	a->state.work += DRAW_WORK;
	if (!v.from.count)
		return;
	a->state.work += MOVE_WORK;
	limit = annealing_limit(a);
	change = move_choose(a, &v, limit);
	if (change >= limit)
		return;
	a->cost += change;
	if (v.from.count > 1)
		mapping_state_exchange(&a->state, v.from, v.to);
	else
		mapping_state_swap(&a->state, v.from.first, v.to.first);
}

/* A move of a single rank or, for their share of the work, of a whole domain. */
static void anneal_step(struct annealing *a)
{
	struct slot_annealing *x = (struct slot_annealing *) a;
	unsigned last = a->state.s->nlevels - 1;
	unsigned long long work = a->state.work;

	if (!last || x->domain_work * DOMAIN_PART > work) {
		move_try(a, last);
		return;
	}
	move_try(a, draw_below(&a->chance, last));
	x->domain_work += a->state.work - work;
}

static double anneal_warmth(const struct annealing *a, double change, double done)
{
	double warm = ((const struct slot_annealing *) a)->warm;

	if (done < SLOW)
		return change * (warm * pow(SETTLED / warm, done / SLOW));
	return change * (SETTLED * pow(COLD / SETTLED, (done - SLOW) / (1 - SLOW)));
}

int anneal_slots(const struct matrix *m, const struct slots *s, uint64_t seed, double warm, unsigned long long work,
		 unsigned *slot, struct err *e)
{
	static const struct annealing_way way = { move_sample, anneal_step, anneal_warmth, 1e-9 };
	struct slot_annealing x = { .warm = warm };
	int rc = annealing_init(&x.a, m, s, s->cells, seed, slot) ? err_set(e, "mapping: out of memory") : 0;

	if (rc == 0) {
		x.a.cost = x.a.least = slots_cost(m, s, slot);
		if (s->nlevels && m->ranks > 1)
			annealing_run(&x.a, &way, work);
		memcpy(slot, x.a.best, m->ranks * sizeof(*slot));
	}
	annealing_free(&x.a);
	return rc;
}

/* --- domains --- */

static bool level_is_worth(const struct slot_level *t)
{
	return t->is_shaped && t->n >= LEAST_DOMAINS && t->first[t->n] >= LEAST_SLOTS * t->n;
}

static int level_anneal(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed,
			unsigned long long work, unsigned *slot, struct err *e)
{
	struct quotient c;
	int rc = quotient_init(&c, m, s, level, slot) ? err_set(e, "mapping: out of memory") :
							anneal_slots(&c.m, &c.s, seed, DOMAIN_WARM, work, c.slot, e);

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
	if (worth > STRATA)
		worth = STRATA;
	for (unsigned t = s->nlevels, done = 0; t-- && done < worth && rc == 0;)
		if (level_is_worth(&s->level[t])) {
			rc = level_anneal(m, s, t, seed + done, work / worth, slot, e);
			done++;
		}
	return rc;
}
