/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/search.h"

#include <math.h>

#include "map/engine/anneal.h"
#include "map/engine/neighbourhood.h"
#include "map/engine/scotch.h"
#include "map/engine/tuning.h"

/* --- starts --- */

/* Slurm's block and cyclic distributions: each host's share of the ranks, on its places in order. */
static int map_dealt(const struct map_problem *b, bool cyclic, unsigned *slot)
{
	const struct places *p = b->p;
	unsigned *share = places_share(p, b->m->ranks), most = 0, rank = 0;
	unsigned *slot_of = malloc(((size_t) p->nplaces + p->nhosts + 1) * sizeof(*slot_of)), *first;

	if (share && slot_of) {
		for (unsigned i = 0; i < b->s->n; i++)
			slot_of[b->s->place[i]] = i;
		first = slot_of + p->nplaces;	/* by host: its first place */
		for (unsigned i = p->nplaces; i--;)
			first[p->place[i].host] = i;
		for (unsigned h = 0; h < p->nhosts; h++)
			most = share[h] > most ? share[h] : most;
		for (unsigned turn = 0; cyclic && turn < most; turn++)
			for (unsigned h = 0; h < p->nhosts; h++)
				if (turn < share[h])
					slot[rank++] = slot_of[first[h] + turn];
		for (unsigned h = 0; !cyclic && h < p->nhosts; h++)
			for (unsigned i = 0; i < share[h]; i++)
				slot[rank++] = slot_of[first[h] + i];
	} else {
		err_set(b->err, "mapping: out of memory");
	}
	free(share);
	free(slot_of);
	return rank == b->m->ranks ? 0 : -1;
}

int candidate_map(const struct candidate *c, const struct map_problem *b, unsigned *slot)
{
	struct split_way way = c->way;

	if (c == &candidates[CANDIDATE_SCOTCH])
		return scotch_map(b->m, b->s, b->seed, slot, b->err);
	if (c == &candidates[CANDIDATE_BLOCK] || c == &candidates[CANDIDATE_CYCLIC])
		return map_dealt(b, c == &candidates[CANDIDATE_CYCLIC], slot);
	way.loose = b->loose ? LOOSE : 0;
	return split_map(b->m, b->s, way, b->seed, slot, b->err);
}

enum need { MAY_TAKE_LONG = 1, HAS_ROOM = 2, HAS_CUTS = 4 };

bool candidate_is_worth(const struct candidate *c, const struct map_problem *b)
{
	unsigned has = (b->quick ? 0 : MAY_TAKE_LONG) | (b->m->ranks < b->s->n ? HAS_ROOM : 0);

	for (unsigned t = 0; t < b->s->nlevels; t++)
		has |= b->s->level[t].is_cut ? HAS_CUTS : 0;
	return !(c->needs & ~has);
}

unsigned long long candidate_work(const struct candidate *c, const struct map_problem *b)
{
	unsigned levels = 1;

	while (b->s->n >> levels)
		levels++;
	return (b->m->row[b->m->ranks] + WORK_RANK * (unsigned long long) b->m->ranks) * levels * c->takes;
}

/*
 * In a tree, everything outside a domain is equally far from all of its parts: halves are the same with and without the
 * external bias.
 */
const struct candidate candidates[] = {
	[CANDIDATE_BLOCK] = { .name = "block" },
	[CANDIDATE_CYCLIC] = { .name = "cyclic" },
	[CANDIDATE_SCOTCH] = { .name = "scotch", .needs = MAY_TAKE_LONG, .takes = 45 },
	{ "split", 0, 16, { .by = SPLIT_BY_SCOTCH } },
	{ "split-halved", HAS_CUTS, 22, { .by = SPLIT_BY_SCOTCH, .halved = true } },
	{ "split-packed", HAS_ROOM, 16, { .by = SPLIT_BY_SCOTCH, .halved = true, .sizes = SPLIT_PACKED } },
	{ "bisection-unbiased", MAY_TAKE_LONG | HAS_CUTS, 70,
	  { .by = SPLIT_BY_BISECTION_UNBIASED, .halved = true, .sizes = SPLIT_FREE } },
	{ "bisection-unbiased-packed", MAY_TAKE_LONG | HAS_CUTS | HAS_ROOM, 70,
	  { .by = SPLIT_BY_BISECTION_UNBIASED, .halved = true, .sizes = SPLIT_PACKED } },
};

const unsigned ncandidates = sizeof(candidates) / sizeof(candidates[0]);

/* --- improvement --- */

/*
 * Without messages, the cheapest trial; of equal ones that with the least loaded network adapter, then the first. So
 * the result never costs more than the first trials, block and cyclic. With messages, of those that are expected to
 * gain over block the one whose messages take least time, and block if there is none.
 */
static bool is_best(const struct search *x, const struct search_trial *t)
{
	const struct search_trial *best = &x->best;

	if (!best->name)
		return true;
	if (x->b.m->messages)
		return t->cost <= x->out->block && t->traffic.time < best->traffic.time &&
		       traffic_is_less(&x->block, &t->traffic, x->b.s->nlevels);
	return t->cost < best->cost || (t->cost == best->cost && t->nic < best->nic);
}

int improve_measure(struct search *x, struct search_trial *t)
{
	unsigned *slot = x->best.slot;

	t->cost = slots_cost(x->b.m, x->b.s, t->slot);
	t->nic = slots_busiest(x->b.m, x->b.s, t->slot, x->load);
	if (x->b.m->messages && traffic_of(x->b.m, x->b.s, t->slot, &t->traffic))
		return err_set(x->b.err, "mapping: out of memory");
	if (!x->best.name) {
		x->out->block = x->out->cheapest = t->cost;
		x->out->nic_block = t->nic;
		x->block = t->traffic;
	}
	if (t->cost < x->out->cheapest)
		x->out->cheapest = t->cost;
	if (!is_best(x, t))
		return 0;
	memcpy(slot, t->slot, x->b.m->ranks * sizeof(*slot));
	x->best = *t;
	x->best.slot = slot;
	return 0;
}

static int trial_polish(struct search *x, struct search_trial *t)
{
	unsigned long long most = SHARE_POLISH * x->work, left = most;

	if (swaps_polish(x->b.m, x->b.s, &left, t->slot))
		return err_set(x->b.err, "mapping: out of memory");
	x->left -= most - left;
	t->polished = true;
	return improve_measure(x, t);
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
	return improve_measure(x, t);
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

static int by_cost(const void *a, const void *b)
{
	const struct search_trial *x = a, *y = b;

	return COMPARE(x->cost, y->cost) ?: COMPARE(x->slot, y->slot);
}

/*
 * At most so many are left, none that costs more than `dearer` times the cheapest, and of those of one cost all but one
 * go: they are alike.
 */
static void keep_cheapest(struct search *x, unsigned most, double dearer)
{
	unsigned n = 0;

	qsort(x->trial, x->ntrials, sizeof(x->trial[0]), by_cost);
	for (unsigned i = 0; i < x->ntrials && n < most && x->trial[i].cost <= dearer * x->trial[0].cost; i++)
		if (!n || x->trial[i].cost != x->trial[n - 1].cost)
			x->trial[n++] = x->trial[i];
	x->ntrials = n;
}

int improve_trials(struct search *x)
{
	unsigned kept;
	double work;

	keep_cheapest(x, x->effort->polished,
		      x->effort->starts > 1 && x->b.m->ranks > x->effort->few ? TRIAL_MOST : INFINITY);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (trial_polish(x, &x->trial[i]))
			return -1;
	if (x->left < SHARE_REST * x->work)
		x->left = SHARE_REST * x->work;
	work = x->ntrials ? SHARE_LAYOUT * x->left / x->ntrials : 0;
	for (unsigned i = 0; i < x->ntrials; i++)
		if (step_run(x, &steps[0], &x->trial[i], work))
			return -1;
	keep_cheapest(x, x->effort->starts, TRIAL_MOST);
	do {
		unsigned gained = 0;

		kept = x->ntrials;
		work = x->left > 0 ? (kept > 1 ? SHARE_ROUND : 1) * x->left / kept : 0;
		for (unsigned i = 0; i < kept; i++)
			if (improve_one(x, &x->trial[i], work, &gained))
				return -1;
		for (unsigned i = 0; i < STEPS; i++)
			x->idle |= (steps[i].rests && !(gained >> i & 1)) << i;
		keep_cheapest(x, (kept + ROUND_KEEPS - 1) / ROUND_KEEPS, TRIAL_MOST);
	} while (kept > 1);
	return 0;
}
