/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/solve.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "map/anneal.h"
#include "map/candidates.h"
#include "map/renew.h"
#include "map/swaps.h"

#define MAX_TRIALS 48
#define MAX_SEEDS 2
/*
 * What is done to improve so many ranks, in units of what an effort has for each; in between, in proportion, and further on. Few take
 * no time at all, some hundred still less than anybody minds, and thousands need more each for the same.
 */
static const struct crowd {
	double ranks, share;
} crowds[] = { { 0, 8 }, { 96, 70 }, { 192, 600 }, { 384, 860 }, { 768, 760 }, { 1024, 720 }, { 4096, 6000 } };
/* How warm annealing begins: see anneal.h. */
#define WARM 0.1
/* Of those that were improved one in so many is improved further, in so many rounds with such a part of the work each. */
#define KEPT 3
#define ROUND 0.25

/* How much is tried: work is in arcs looked at, or what takes as long, for each rank. */
static const struct effort {
	const char *name;
	bool quick;			/* see struct problem */
	unsigned seeds;			/* candidates that take a seed get so many */
	unsigned few;			/* so many ranks and fewer: more seeds */
	unsigned polished;		/* so many of the cheapest candidates are polished */
	unsigned starts;		/* of the best after polish, so many are renewed and annealed */
	unsigned polish, renew, anneal;
} efforts[] = {
	[EFFORT_FAST] = { "fast", true, 1, 256, 2, 1, 500, 12000, 3000 },
	[EFFORT_NORMAL] = { "normal", false, 1, 768, MAX_TRIALS, 9, 1500, 420000, 30000 },
	[EFFORT_HIGH] = { "high", false, 4, 0, MAX_TRIALS, MAX_TRIALS, 20000, 12000000, 4000000 },
};

int mapping_effort_parse(const char *name)
{
	for (size_t i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++)
		if (!strcmp(efforts[i].name, name))
			return i;
	return -1;
}

/* A mapping on its way: how it began, and what was done to it. */
struct trial {
	const char *name;
	bool polished, annealed;
	double cost, nic;
	unsigned *slot;
};

struct search {
	struct problem b;
	const struct effort *effort;
	struct trial trial[MAX_TRIALS];	/* slot of all of them in one piece, beginning with that of best */
	unsigned ntrials;
	struct trial best;
	double *load;
	struct mapping *out;
};

double mapping_cost(const struct matrix *m, const struct places *p, const unsigned *place)
{
	double cost = 0;

	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			cost += m->weight[i] * places_distance(p, place[r], place[m->adj[i]]);
	return cost / 2;
}

static int no_memory(struct search *x)
{
	return err_set(x->b.err, "mapping: out of memory");
}

/* The guard: the cheapest of all, of equals the one with the least busy network card, of equals the first. */
static void measure(struct search *x, struct trial *t)
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

static int try_candidate(struct search *x, const struct candidate *c, unsigned turn)
{
	struct trial *t = &x->trial[x->ntrials];
	struct problem b = x->b;

	if (!candidate_is_worth(c, &b))
		return 0;
	b.seed = x->b.seed + turn * 0x9e3779b9u;
	b.loose = turn;
	t->name = c->name;
	if (c->map(&b, t->slot))
		return -1;
	measure(x, t);
	x->ntrials++;
	return 0;
}

static unsigned seeds_of(const struct search *x)
{
	unsigned seeds = x->effort->seeds + x->effort->few / x->b.m->ranks;

	return seeds < MAX_SEEDS ? seeds : MAX_SEEDS;
}

static int try_candidates(struct search *x)
{
	unsigned seeds = seeds_of(x);

	for (unsigned turn = 0; turn < seeds; turn++)
		for (unsigned c = turn ? CANDIDATE_SEEDED : 0; c < ncandidates; c++)
			if (try_candidate(x, &candidates[c], turn))
				return -1;
	x->out->block = x->trial[CANDIDATE_BLOCK].cost;
	x->out->nic_block = x->trial[CANDIDATE_BLOCK].nic;
	x->out->cyclic = x->trial[CANDIDATE_CYCLIC].cost;
	x->out->scotch = x->effort->quick ? NAN : x->trial[CANDIDATE_SCOTCH].cost;
	return 0;
}

static int polish(struct search *x, struct trial *t)
{
	unsigned long long work = (unsigned long long) x->effort->polish * x->b.m->ranks;

	if (swaps_polish(x->b.m, x->b.s, work, t->slot))
		return no_memory(x);
	t->polished = true;
	measure(x, t);
	return 0;
}

static unsigned long long work_of(const struct search *x, unsigned each, double part)
{
	const struct crowd *c = crowds, *last = crowds + sizeof(crowds) / sizeof(crowds[0]) - 1;
	double n = x->b.m->ranks;

	while (c + 1 < last && n > c[1].ranks)
		c++;
	return part * each * (c->share + (n - c->ranks) * (c[1].share - c->share) / (c[1].ranks - c->ranks));
}

static int improve_one(struct search *x, struct trial *t, unsigned turn, double part)
{
	const struct matrix *m = x->b.m;
	const struct slots *s = x->b.s;
	unsigned seed = x->b.seed + turn;

	if (renew(m, s, seed, work_of(x, x->effort->renew, part), t->slot, x->b.err) || polish(x, t))
		return -1;
	if (anneal(m, s, seed, WARM, work_of(x, x->effort->anneal, part), t->slot))
		return no_memory(x);
	t->annealed = true;
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

/*
 * What a beginning comes to shows only when it is improved: the cheapest one after polish is often not the best. So some are improved
 * a little, of those the cheapest ones further, and at last one alone.
 */
static int improve(struct search *x)
{
	double part, rest = 1;
	unsigned turn = 0;

	keep_cheapest(x, x->effort->polished);
	for (unsigned i = 0; i < x->ntrials; i++)
		if (polish(x, &x->trial[i]))
			return -1;
	for (keep_cheapest(x, x->effort->starts); rest > 0; keep_cheapest(x, (x->ntrials + KEPT - 1) / KEPT)) {
		part = x->ntrials > 1 && rest > ROUND ? ROUND : rest;
		rest -= part;
		for (unsigned i = 0; i < x->ntrials; i++)
			if (improve_one(x, &x->trial[i], turn++, part / x->ntrials))
				return -1;
	}
	return 0;
}

static int search(struct search *x)
{
	unsigned n = x->b.m->ranks;
	unsigned *slots = malloc((MAX_TRIALS + 1) * (size_t) n * sizeof(*slots));
	int rc;

	x->load = malloc((x->b.s->hosts + 1) * sizeof(*x->load));
	x->out->place = malloc(n * sizeof(*x->out->place));
	if (!slots || !x->load || !x->out->place) {
		rc = no_memory(x);
	} else {
		x->best.slot = slots;
		for (unsigned i = 0; i < MAX_TRIALS; i++)
			x->trial[i].slot = slots + (i + 1) * (size_t) n;
		rc = try_candidates(x) || improve(x) ? -1 : 0;
	}
	for (unsigned r = 0; r < n && rc == 0; r++)
		x->out->place[r] = x->b.s->place[x->best.slot[r]];
	free(slots);
	free(x->load);
	return rc;
}

static void tell(struct search *x)
{
	snprintf(x->out->method, sizeof(x->out->method), "%s%s%s", x->best.name, x->best.annealed ? "+annealing" : "",
		 x->best.polished ? "+swaps" : "");
	x->out->cost = x->best.cost;
	x->out->nic = x->best.nic;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int mapping_solve(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed, struct mapping *out,
		  struct err *e)
{
	struct mapping found = { .ranks = m->ranks };
	struct search x = { .effort = &efforts[effort], .out = &found };
	double start = seconds_now();
	struct slots *s;
	int rc;

	if (p->nplaces < m->ranks)
		return err_set(e, "mapping: %u ranks, but the job has only %u places", m->ranks, p->nplaces);
	if (!(s = slots_new(p, e)))
		return -1;
	x.b = (struct problem){ m, p, s, seed, efforts[effort].quick, false, e };
	rc = search(&x);
	slots_free(s);
	if (rc) {
		mapping_free(&found);
		return -1;
	}
	tell(&x);
	found.seconds = seconds_now() - start;
	*out = found;
	return 0;
}

int mapping_compare(const struct matrix *m, const struct places *p, unsigned seed, struct mapping *out, struct err *e)
{
	struct slots *s = slots_new(p, e);
	struct problem b = { m, p, s, seed, false, false, e };
	unsigned *slot;
	int rc = -1;

	if (!s)
		return -1;
	if (!(slot = malloc(m->ranks * sizeof(*slot))))
		err_set(e, "mapping: out of memory");
	else if ((rc = candidates[CANDIDATE_SCOTCH].map(&b, slot)) == 0)
		out->scotch = slots_cost(m, s, slot);
	free(slot);
	slots_free(s);
	return rc;
}

void mapping_free(struct mapping *m)
{
	free(m->place);
	*m = (struct mapping){0};
}
