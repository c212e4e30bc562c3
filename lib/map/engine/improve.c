/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/improve.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/anneal.h"
#include "map/engine/neighbourhood.h"
#include "map/engine/swaps.h"
#include "map/engine/tuning.h"

/*
 * Keeps the cheapest trial; of equal ones that with the least loaded network adapter, then the first. So the result is
 * never worse than the first trials, block and cyclic.
 */
void improve_measure(struct search *x, struct search_trial *t)
{
	unsigned *slot = x->best.slot;

	t->cost = slots_cost(x->b.m, x->b.s, t->slot);
	t->nic = slots_busiest(x->b.m, x->b.s, t->slot, x->load);
	if (x->best.name && (t->cost > x->best.cost || (t->cost == x->best.cost && t->nic >= x->best.nic)))
		return;
	memcpy(slot, t->slot, x->b.m->ranks * sizeof(*slot));
	x->best = *t;
	x->best.slot = slot;
}

static int trial_polish(struct search *x, struct search_trial *t)
{
	unsigned long long most = SHARE_POLISH * x->work, left = most;

	if (swaps_polish(x->b.m, x->b.s, &left, t->slot))
		return err_set(x->b.err, "mapping: out of memory");
	x->left -= most - left;
	t->polished = true;
	improve_measure(x, t);
	return 0;
}

/* The improvement steps, from whole domains to single ranks. */
static const struct step {
	int (*improve)(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
		       unsigned *slot, struct err *e);
	double share;			/* share of the work */
	bool rests;			/* skipped once it gained nothing in a round: the others get its share */
} steps[] = { { anneal_domains, 0.1, false }, { anneal_nodes, 0.4, true }, { neighbourhood_search, 0.45, false },
	      { anneal_ranks, 0.05, false } };

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static int step_run(struct search *x, const struct step *step, struct search_trial *t, double work)
{
	x->left -= work;
	if (step->improve(x->b.m, x->b.s, x->b.seed + x->turn++, work, t->slot, x->b.err))
		return -1;
	improve_measure(x, t);
	return 0;
}

/* gained: bits of the steps that gained something. */
static int improve_one(struct search *x, struct search_trial *t, double work, unsigned *gained)
{
	double shares = 0;

	for (unsigned i = 0; i < STEPS; i++)
		shares += x->idle >> i & 1 ? 0 : steps[i].share;
	for (unsigned i = 0; i < STEPS; i++) {
		double before = t->cost;

		if (x->idle >> i & 1)
			continue;
		if (step_run(x, &steps[i], t, steps[i].share / shares * work))
			return -1;
		*gained |= (t->cost < before) << i;
	}
	t->improved = true;
	return trial_polish(x, t);
}

/* Improves all trials once. */
static int improve_all(struct search *x, double work)
{
	unsigned gained = 0;

	for (unsigned i = 0; i < x->ntrials; i++)
		if (improve_one(x, &x->trial[i], work, &gained))
			return -1;
	for (unsigned i = 0; i < STEPS; i++)
		x->idle |= (steps[i].rests && !(gained >> i & 1)) << i;
	return 0;
}

static int by_cost(const void *a, const void *b)
{
	const struct search_trial *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Those after so many are left, and of those of one cost all but one: they are alike. */
static void keep_cheapest(struct search *x, unsigned most)
{
	unsigned n = 0;

	qsort(x->trial, x->ntrials, sizeof(x->trial[0]), by_cost);
	for (unsigned i = 0; i < x->ntrials && n < most; i++)
		if (!n || x->trial[i].cost != x->trial[n - 1].cost)
			x->trial[n++] = x->trial[i];
	x->ntrials = n;
}

/* A part of what is left, for each of those that are kept. */
static double work_each(const struct search *x, double part)
{
	return x->left > 0 ? part * x->left / x->ntrials : 0;
}

static int trials_begin(struct search *x)
{
	double work;

	keep_cheapest(x, x->effort->polished);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (trial_polish(x, &x->trial[i]))
			return -1;
	if (x->left < SHARE_REST * x->work)
		x->left = SHARE_REST * x->work;
	work = work_each(x, SHARE_LAYOUT);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (step_run(x, &steps[0], &x->trial[i], work))
			return -1;
	return 0;
}

int improve_trials(struct search *x)
{
	unsigned kept;

	if (trials_begin(x))
		return -1;
	keep_cheapest(x, x->effort->starts);
	do {
		double work = work_each(x, x->ntrials > 1 ? SHARE_ROUND : 1);

		kept = x->ntrials;
		if (improve_all(x, work))
			return -1;
		keep_cheapest(x, (kept + ROUND_KEEPS - 1) / ROUND_KEEPS);
	} while (kept > 1);
	return 0;
}
