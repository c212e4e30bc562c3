/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/anneal.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/draw.h"
#include "map/seats.h"

/* How often it cools. */
#define STEPS 200
/* Moves from which the warmth to begin with is taken. */
#define SAMPLES 512
/* The warmth to end with, in averages of what a dearer move costs. */
#define COLD 0.001
/* One part in so many of the work goes into exchanges of whole domains. */
#define DOMAIN_PART 4
/* What a move costs beside its arcs. */
#define MOVE_WORK 16

struct annealing {
	struct seats seats;
	unsigned *best;
	double cost, least;
	double warmth;
	uint64_t chance;
	unsigned long long domain_work;	/* that part of the work which went into exchanges of domains */
};

struct move {
	unsigned rank, to;
};

/* Somewhere in a domain, of whatever size, around one of the rank's partners, or beside him; now and then anywhere. */
static unsigned target_draw(struct annealing *a, unsigned rank)
{
	const struct matrix *m = a->seats.m;
	const struct slots *s = a->seats.s;
	unsigned choice = draw_below(&a->chance, 8 * s->strata), domain, at;
	size_t degree = m->row[rank + 1] - m->row[rank];
	const struct stratum *t;
	struct run r;

	if (choice < s->strata || !degree || (s->strata == 1 && choice % 2))
		return draw_below(&a->chance, s->n);
	t = &s->stratum[choice % s->strata];
	domain = t->of[a->seats.slot[m->adj[m->row[rank] + draw_below(&a->chance, degree)]]];
	r = seats_run(t, domain, SLOT_NONE);
	at = r.first + draw_below(&a->chance, r.count > 1 ? r.count : 2);
	return r.count > 1 ? at : at > r.first ? at % s->n : (at + s->n - 1) % s->n;
}

/* What it costs more when the rank goes from its slot to another, but for its exchange with `not`. */
static double rank_change(struct annealing *a, unsigned rank, unsigned from, unsigned to, unsigned not)
{
	const struct matrix *m = a->seats.m;
	double more = 0;

	a->seats.work += m->row[rank + 1] - m->row[rank];
	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++) {
		unsigned at = a->seats.slot[m->adj[i]];

		if (m->adj[i] != not)
			more += m->weight[i] * (slots_distance(a->seats.s, to, at) - slots_distance(a->seats.s, from, at));
	}
	return more;
}

static double move_change(struct annealing *a, struct move v)
{
	unsigned from = a->seats.slot[v.rank], other = a->seats.rank[v.to];
	double more = rank_change(a, v.rank, from, v.to, other);

	a->seats.work += MOVE_WORK;
	return other == SLOT_NONE ? more : more + rank_change(a, other, v.to, from, v.rank);
}

static void move_make(struct annealing *a, struct move v)
{
	unsigned from = a->seats.slot[v.rank], other = a->seats.rank[v.to];

	a->seats.rank[from] = other;
	a->seats.rank[v.to] = v.rank;
	a->seats.slot[v.rank] = v.to;
	if (other != SLOT_NONE)
		a->seats.slot[other] = from;
}

static struct move move_draw(struct annealing *a)
{
	unsigned rank = draw_below(&a->chance, a->seats.m->ranks);

	return (struct move){ rank, target_draw(a, rank) };
}

/* What a move that makes it dearer costs, on an average. */
static double dearer_sample(struct annealing *a)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		struct move v = move_draw(a);
		double more = v.to == a->seats.slot[v.rank] ? 0 : move_change(a, v);

		if (more > 0) {
			sum += more;
			n++;
		}
	}
	return n ? sum / n : 0;
}

static bool is_taken(struct annealing *a, double more)
{
	if (more > 0 && draw_unit(&a->chance) >= exp(-more / a->warmth))
		return false;
	a->cost += more;
	return true;
}

static void rank_step(struct annealing *a)
{
	struct move v = move_draw(a);

	if (v.to == a->seats.slot[v.rank])
		a->seats.work += MOVE_WORK;
	else if (is_taken(a, move_change(a, v)))
		move_make(a, v);
}

/* Two domains of a stratum above the last: that of a rank, and one beside that of a partner, or anywhere. */
static void domain_step(struct annealing *a)
{
	const struct stratum *t = &a->seats.s->stratum[draw_below(&a->chance, a->seats.s->strata - 1)];
	const struct matrix *m = a->seats.m;
	unsigned rank = draw_below(&a->chance, m->ranks), own = t->of[a->seats.slot[rank]], other = draw_below(&a->chance, t->n);
	size_t degree = m->row[rank + 1] - m->row[rank];
	struct run x, y;
	double before;

	a->seats.work += MOVE_WORK;
	if (degree && draw_below(&a->chance, 2))
		other = t->of[a->seats.slot[m->adj[m->row[rank] + draw_below(&a->chance, degree)]]] + draw_below(&a->chance, 3);
	other %= t->n;
	if (own == other)
		return;
	x = seats_run(t, own, SLOT_NONE);
	y = seats_run(t, other, x.count);
	x.count = y.count;
	before = seats_cost(&a->seats, x, y);
	seats_exchange(&a->seats, x, y);
	if (!is_taken(a, seats_cost(&a->seats, x, y) - before))
		seats_exchange(&a->seats, x, y);
}

static void step(struct annealing *a, unsigned long long until)
{
	while (a->seats.work < until) {
		unsigned long long work = a->seats.work;

		if (a->seats.s->strata < 2 || a->domain_work * DOMAIN_PART > work) {
			rank_step(a);
			continue;
		}
		domain_step(a);
		a->domain_work += a->seats.work - work;
	}
}

static void keep_best(struct annealing *a)
{
	if (a->cost >= a->least - 1e-9 * a->least)
		return;
	a->least = a->cost;
	memcpy(a->best, a->seats.slot, a->seats.m->ranks * sizeof(*a->best));
}

static void cool_down(struct annealing *a, double warm, unsigned long long work)
{
	double cold, dearer = dearer_sample(a);

	if (dearer <= 0)
		return;
	warm *= dearer;
	cold = dearer * COLD;
	for (unsigned i = 0; i < STEPS; i++) {
		a->warmth = warm * pow(cold / warm, (double) i / (STEPS - 1));
		step(a, work * (i + 1) / STEPS);
		keep_best(a);
	}
}

int anneal(const struct matrix *m, const struct slots *s, uint64_t seed, double warm, unsigned long long work,
	   unsigned *slot)
{
	struct annealing a = { .chance = seed, .best = malloc(m->ranks * sizeof(*a.best)) };
	int rc = a.best ? seats_init(&a.seats, m, s, slot) : -1;

	if (rc == 0) {
		memcpy(a.best, slot, m->ranks * sizeof(*slot));
		a.cost = a.least = slots_cost(m, s, slot);
		if (s->strata && m->ranks > 1)
			cool_down(&a, warm, work);
		memcpy(slot, a.best, m->ranks * sizeof(*slot));
		seats_free(&a.seats);
	}
	free(a.best);
	return rc;
}
