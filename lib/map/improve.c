/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/improve.h"

#include <stdlib.h>

#include "map/afar.h"
#include "map/anneal.h"
#include "map/renew.h"
#include "map/swaps.h"

/* One mapping is polished with such a part of the work at most. Such a part is there for what follows, whatever went before. */
#define POLISH (1.0 / 256)
#define REST 0.25
/* All are laid out anew with such a part of that, and in each round those that are kept improved with such a part of what is left. */
#define LAYOUT 0.08
#define ROUND 0.25
/* One in so many is kept. */
#define KEPT 3
/* How warm annealing begins: see anneal.h. */
#define WARM 0.1

static int polish(struct search *x, struct trial *t)
{
	unsigned long long most = POLISH * x->work, left = most;

	if (swaps_polish(x->b.m, x->b.s, &left, t->slot))
		return search_no_memory(x);
	x->left -= most - left;
	t->polished = true;
	search_measure(x, t);
	return 0;
}

static int lay_out(struct search *x, struct trial *t, unsigned seed, unsigned long long work)
{
	return afar_anneal(x->b.m, x->b.s, seed, work, t->slot) ? search_no_memory(x) : 0;
}

static int renew_halves(struct search *x, struct trial *t, unsigned seed, unsigned long long work)
{
	return renew(x->b.m, x->b.s, seed, work, t->slot, x->b.err);
}

static int anneal_ranks(struct search *x, struct trial *t, unsigned seed, unsigned long long work)
{
	return anneal(x->b.m, x->b.s, seed, WARM, work, t->slot) ? search_no_memory(x) : 0;
}

/* What makes a mapping cheaper, from afar to near. */
static const struct step {
	int (*take)(struct search *x, struct trial *t, unsigned seed, unsigned long long work);
	double share;			/* of the work */
} steps[] = { { lay_out, 0.2 }, { renew_halves, 0.75 }, { anneal_ranks, 0.05 } };

static int take(struct search *x, const struct step *step, struct trial *t, double work)
{
	x->left -= work;
	if (step->take(x, t, x->b.seed + x->turn++, work))
		return -1;
	search_measure(x, t);
	return 0;
}

static int improve_one(struct search *x, struct trial *t, double work)
{
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (take(x, &steps[i], t, steps[i].share * work))
			return -1;
	t->improved = true;
	return polish(x, t);
}

static int by_cost(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;

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

static int begin(struct search *x)
{
	double work;

	keep_cheapest(x, x->effort->polished);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (polish(x, &x->trial[i]))
			return -1;
	if (x->left < REST * x->work)
		x->left = REST * x->work;
	work = work_each(x, LAYOUT);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (take(x, &steps[0], &x->trial[i], work))
			return -1;
	return 0;
}

int improve(struct search *x)
{
	unsigned kept;

	if (begin(x))
		return -1;
	keep_cheapest(x, x->effort->starts);
	do {
		double work = work_each(x, x->ntrials > 1 ? ROUND : 1);

		kept = x->ntrials;
		for (unsigned i = 0; i < kept; i++)
			if (improve_one(x, &x->trial[i], work))
				return -1;
		keep_cheapest(x, (kept + KEPT - 1) / KEPT);
	} while (kept > 1);
	return 0;
}
