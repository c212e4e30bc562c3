/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/neighbourhood.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/attempts.h"
#include "map/matrix/draw.h"
#include "map/engine/split_parts.h"
#include "map/engine/tuning.h"

/* The gain of repartitioning at a level, and the work for it. */
struct yield {
	double gain, work;
};

struct neighbourhood {
	struct split x;
	uint64_t chance;
	struct attempts attempts;
	unsigned idle;
	double cost, least;		/* relative to the start */
	unsigned *best;			/* by rank: the slot in the cheapest mapping */
	unsigned *last, nlast;		/* the ranks of the last pair that was repartitioned */
	unsigned *on;			/* the rank on each slot, or SLOT_NONE */
	struct yield yield[PATHS_LEVELS + 1];
	const struct slot_level *level;
	unsigned domain[2];		/* the two domains at that level */
	unsigned *rank, *drawn, *was, n;	/* of both; in the order drawn, and the slot that each of those had */
	bool *second;			/* by rank: in the second domain */
	struct split_halves pair;
};

/* Every other time a rank of the last repartitioned pair: its neighbours may have become worth trying. */
static unsigned draw_rank(struct neighbourhood *r)
{
	if (r->nlast && draw_below(&r->chance, 2))
		return r->last[draw_below(&r->chance, r->nlast)];
	return draw_below(&r->chance, r->x.m->ranks);
}

static struct yield *yield_of(struct neighbourhood *r)
{
	return &r->yield[r->level - r->x.s->level];
}

/* Of two random levels the one with the larger gain for its work. */
static void draw_level(struct neighbourhood *r)
{
	unsigned n = r->x.s->nlevels - 1, one = draw_below(&r->chance, n), other = draw_below(&r->chance, n);
	const struct yield *a = &r->yield[one], *b = &r->yield[other];

	r->level = &r->x.s->level[b->gain * a->work > a->gain * b->work ? other : one];
	yield_of(r)->work += LEVEL_DRAW;
}

/* The domains of a rank and one of its partners. */
static bool draw_domains(struct neighbourhood *r)
{
	const struct matrix *m = r->x.m;
	unsigned rank = draw_rank(r), degree = m->row[rank + 1] - m->row[rank];

	r->x.work += WORK_DRAW;
	draw_level(r);
	if (!degree)
		return false;
	r->domain[0] = r->level->of[r->x.slot[rank]];
	r->domain[1] = r->level->of[r->x.slot[m->adj[m->row[rank] + draw_below(&r->chance, degree)]]];
	return r->domain[0] != r->domain[1];
}

static unsigned room_of(const struct neighbourhood *r, unsigned half)
{
	return r->level->first[r->domain[half] + 1] - r->level->first[r->domain[half]];
}

static void pair_gather(struct neighbourhood *r)
{
	r->pair = (struct split_halves){ .inner = r->level[1].typical };
	r->n = 0;
	for (unsigned half = 0; half < 2; half++) {
		unsigned first = r->level->first[r->domain[half]], end = first + room_of(r, half);

		r->pair.middle[half] = first + (end - first) / 2;
		for (unsigned i = first; i < end; i++)
			if (r->on[i] != SLOT_NONE) {
				r->second[r->n] = half;
				r->was[r->n] = r->x.was_at[r->on[i]] = i;
				r->rank[r->n++] = r->on[i];
			}
	}
}

static bool is_worth(const struct neighbourhood *r)
{
	return r->n <= PAIR_MOST && (r->n >= PAIR_LEAST || r->n * PAIR_PART >= r->x.m->ranks);
}

static void set_sizes(struct neighbourhood *r)
{
	unsigned room[2] = { room_of(r, 0), room_of(r, 1) };

	r->pair.n = r->n;
	r->pair.least = r->n > room[1] ? r->n - room[1] : 0;
	r->pair.most = r->n < room[0] ? r->n : room[0];
}

/* The cost of these ranks, among themselves and with others. */
static double cost_of(struct neighbourhood *r)
{
	const struct split *x = &r->x;
	double among = 0, others = 0;

	for (unsigned i = 0; i < r->n; i++)
		x->local[r->drawn[i]] = i;
	for (unsigned i = 0; i < r->n; i++) {
		unsigned rank = r->drawn[i];

		for (size_t a = x->m->row[rank]; a < x->m->row[rank + 1]; a++)
			*(x->local[x->m->adj[a]] == SLOT_NONE ? &others : &among) +=
				x->m->weight[a] * slots_distance(x->s, x->slot[rank], x->slot[x->m->adj[a]]);
		r->x.work += WORK_GATHER * (x->m->row[rank + 1] - x->m->row[rank]);
	}
	for (unsigned i = 0; i < r->n; i++)
		x->local[r->drawn[i]] = SLOT_NONE;
	return among / 2 + others;
}

/* Returns 1 if they are partitioned differently now. anew: whether that is cheaper or not. */
static int pair_part(struct neighbourhood *r, bool anew)
{
	const struct split *x = &r->x;
	unsigned below = r->level - x->s->level + 1, *half[2];
	int rc;

	r->pair.from = anew ? SPLIT_ANEW : SPLIT_BEAT;
	r->pair.second = r->second;
	rc = split_pair(&r->x, &r->pair, r->rank, true);

	half[0] = r->rank;
	half[1] = r->rank + r->pair.size[0];
	for (unsigned i = 0; i < 2 && rc > 0; i++) {
		unsigned first = r->level->first[r->domain[i]];

		if (split_domain(&r->x, below, first, first + room_of(r, i), half[i], r->pair.size[i]))
			rc = -1;
	}
	return rc;
}

static void pair_settle(struct neighbourhood *r, bool undo)
{
	for (unsigned i = 0; i < r->n; i++) {
		r->on[r->was[i]] = SLOT_NONE;
		if (undo)
			r->x.at[r->drawn[i]] = r->x.slot[r->drawn[i]] = r->was[i];
	}
	for (unsigned i = 0; i < r->n; i++) {
		unsigned slot = r->x.slot[r->drawn[i]];

		r->on[slot] = r->drawn[i];
		if (slot == r->was[i])
			continue;
		attempts_change(&r->attempts, slot);
		attempts_change(&r->attempts, r->was[i]);
	}
}

/* They are partitioned differently; their cost rose by `more`. */
static void pair_accept(struct neighbourhood *r, bool anew, double more)
{
	memcpy(r->last, r->drawn, r->n * sizeof(*r->last));
	r->nlast = r->n;
	pair_settle(r, !anew && more >= 0);
	if (anew || more < 0)
		r->cost += more;
	if (!anew && more < 0)
		yield_of(r)->gain -= more;
}

/* Returns 1; 0 when there is nothing to repartition; or -1. */
static int neighbourhood_pair(struct neighbourhood *r, bool anew)
{
	unsigned long long work = r->x.work;
	double before;
	int rc;

	pair_gather(r);
	if (!is_worth(r))
		return 0;
	set_sizes(r);
	memcpy(r->drawn, r->rank, r->n * sizeof(*r->drawn));
	before = cost_of(r);
	r->x.way.loose = anew ? LOOSE : 0;
	rc = pair_part(r, anew);
	if (rc > 0)
		pair_accept(r, anew, cost_of(r) - before);
	yield_of(r)->work += r->x.work - work;
	return rc < 0 ? -1 : 1;
}

static void sit_down(struct neighbourhood *r)
{
	memset(r->on, 0xff, r->x.s->n * sizeof(*r->on));
	for (unsigned i = 0; i < r->x.m->ranks; i++)
		r->on[r->x.at[i] = r->x.slot[i]] = i;
}

static void keep_best(struct neighbourhood *r)
{
	size_t bytes = r->x.m->ranks * sizeof(*r->best);

	if (r->cost < r->least) {
		r->least = r->cost;
		memcpy(r->best, r->x.slot, bytes);
		attempts_keep(&r->attempts);
	} else if (r->cost > r->least) {
		r->cost = r->least;
		memcpy(r->x.slot, r->best, bytes);
		attempts_return(&r->attempts);
		sit_down(r);
	}
}

/*
 * Improves pairs as long as there are any that may improve; then repartitions a random one, after which its
 * surroundings may improve.
 */
static int pair_next(struct neighbourhood *r)
{
	bool anew = r->idle >= PAIR_IDLE;
	int rc;

	if (r->idle++ == PAIR_IDLE)
		keep_best(r);
	if (!draw_domains(r))
		return 0;
	if (!attempts_add(&r->attempts, r->level - r->x.s->level, r->domain[0], r->domain[1]) && !anew)
		return 0;
	rc = neighbourhood_pair(r, anew);
	if (rc > 0)
		r->idle = 0;
	return rc;
}

static int renewal_init(struct neighbourhood *r)
{
	const struct slots *s = r->x.s;
	size_t ranks = r->x.m->ranks;
	double cost = slots_cost(r->x.m, s, r->x.slot);

	r->on = malloc((s->n + 5 * ranks) * sizeof(*r->on));
	r->second = malloc(ranks);
	if (attempts_init(&r->attempts, s) || !r->on || !r->second)
		return split_no_memory(&r->x);
	if (split_remember(&r->x))
		return -1;
	r->rank = r->on + s->n;
	r->drawn = r->rank + ranks;
	r->was = r->drawn + ranks;
	r->last = r->was + ranks;
	r->best = r->last + ranks;
	memcpy(r->best, r->x.slot, ranks * sizeof(*r->best));
	for (unsigned t = 0; t < s->nlevels; t++)
		r->yield[t] = (struct yield){ LEVEL_GAIN * cost, LEVEL_WORK };
	sit_down(r);
	return 0;
}

int neighbourhood_search(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			 unsigned *slot, struct err *e)
{
	struct split_way way = { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_FREE, .quick = true };
	struct neighbourhood r = { .chance = seed };
	int rc = split_open(&r.x, m, s, way, seed, slot, e) || renewal_init(&r) ? -1 : 0;

	while (rc >= 0 && s->nlevels > 1 && r.x.work < work)
		rc = pair_next(&r);
	if (rc >= 0)
		keep_best(&r);
	split_close(&r.x);
	attempts_free(&r.attempts);
	free(r.on);
	free(r.second);
	return rc < 0 ? -1 : 0;
}
