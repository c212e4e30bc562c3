/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/neighbourhood.h"

#include "map/engine/split.h"
#include "map/engine/tuning.h"
#include "map/matrix/draw.h"

/* --- pairs that were tried --- */

/* In a hash table, where a collision replaces the earlier entry. */
struct attempt {
	unsigned level, one, other, when;
};

int attempts_init(struct attempts *a, const struct slots *s)
{
	*a = (struct attempts){ .s = s };
	for (unsigned t = 0; t < s->nlevels; t++)
		a->domains += s->level[t].n;
	a->changed[0] = calloc(a->domains + 1, sizeof(*a->changed[0]));
	a->kept = calloc(a->domains + 1, sizeof(*a->kept));
	a->memory = calloc(PAIR_MEMORY, sizeof(*a->memory));
	if (!a->changed[0] || !a->kept || !a->memory)
		return -1;
	for (unsigned t = 1; t < s->nlevels; t++)
		a->changed[t] = a->changed[t - 1] + s->level[t - 1].n;
	return 0;
}

void attempts_free(struct attempts *a)
{
	free(a->changed[0]);
	free(a->kept);
	free(a->memory);
}

bool attempts_add(struct attempts *a, unsigned level, unsigned one, unsigned other)
{
	struct attempt now = { level, one < other ? one : other, one < other ? other : one, ++a->now };
	uint64_t key = ((uint64_t) now.one << 32 | now.other) + ((uint64_t) level << 56);
	struct attempt *last = &a->memory[draw_below(&key, PAIR_MEMORY)];
	bool in_vain = last->level == level && last->one == now.one && last->other == now.other &&
		last->when > a->changed[level][one] && last->when > a->changed[level][other];

	*last = now;
	return !in_vain;
}

void attempts_change(struct attempts *a, unsigned slot)
{
	for (unsigned t = 0; t < a->s->nlevels; t++)
		a->changed[t][a->s->level[t].of[slot]] = a->now;
}

void attempts_keep(struct attempts *a)
{
	memcpy(a->kept, a->changed[0], a->domains * sizeof(*a->kept));
}

void attempts_return(struct attempts *a)
{
	memcpy(a->changed[0], a->kept, a->domains * sizeof(*a->kept));
}

/* --- the search --- */

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

/*
 * The domains of a rank and one of its partners: every other time a rank of the last repartitioned pair, whose
 * neighbours may have become worth trying; of two random levels the one with the larger gain for its work.
 */
static bool draw_domains(struct neighbourhood *r)
{
	const struct matrix *m = r->x.m;
	unsigned rank, degree, n = r->x.s->nlevels - 1, one, other;

	if (r->nlast && draw_below(&r->chance, 2))
		rank = r->last[draw_below(&r->chance, r->nlast)];
	else
		rank = draw_below(&r->chance, m->ranks);
	r->x.work += WORK_DRAW;
	one = draw_below(&r->chance, n);
	other = draw_below(&r->chance, n);
	if (r->yield[other].gain * r->yield[one].work > r->yield[one].gain * r->yield[other].work)
		one = other;
	r->level = &r->x.s->level[one];
	r->yield[one].work += LEVEL_DRAW;
	if (!(degree = m->row[rank + 1] - m->row[rank]))
		return false;
	r->domain[0] = r->level->of[r->x.slot[rank]];
	r->domain[1] = r->level->of[r->x.slot[m->adj[m->row[rank] + draw_below(&r->chance, degree)]]];
	return r->domain[0] != r->domain[1];
}

/* Gathers the ranks of both domains. */
static void pair_gather(struct neighbourhood *r)
{
	unsigned room[2];

	r->pair = (struct split_halves){ .inner = r->level[1].typical };
	r->n = 0;
	for (unsigned half = 0; half < 2; half++) {
		unsigned first = r->level->first[r->domain[half]], end = r->level->first[r->domain[half] + 1];

		room[half] = end - first;
		r->pair.middle[half] = first + room[half] / 2;
		for (unsigned i = first; i < end; i++)
			if (r->on[i] != SLOT_NONE) {
				r->second[r->n] = half;
				r->was[r->n] = r->x.was_at[r->on[i]] = i;
				r->rank[r->n++] = r->on[i];
			}
	}
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

/* Puts the ranks of the pair on their new slots, or back. */
static void pair_settle(struct neighbourhood *r, bool undo)
{
	memcpy(r->last, r->drawn, r->n * sizeof(*r->last));
	r->nlast = r->n;
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

/* anew: whether that is cheaper or not. Returns 1; 0 when there is nothing to repartition; or -1. */
static int neighbourhood_pair(struct neighbourhood *r, bool anew)
{
	unsigned level = r->level - r->x.s->level, *half;
	unsigned long long work = r->x.work;
	double more;
	int rc;

	pair_gather(r);
	if (r->n > PAIR_MOST || (r->n < PAIR_LEAST && r->n * PAIR_PART < r->x.m->ranks))
		return 0;
	memcpy(r->drawn, r->rank, r->n * sizeof(*r->drawn));
	r->x.way.loose = anew ? LOOSE : 0;
	r->pair.from = anew ? SPLIT_ANEW : SPLIT_BEAT;
	r->pair.second = r->second;
	rc = split_pair(&r->x, &r->pair, half = r->rank, true);
	more = rc > 0 ? -cost_of(r) : 0;
	for (unsigned i = 0; i < 2 && rc > 0; half += r->pair.size[i++]) {
		const unsigned *first = &r->level->first[r->domain[i]];

		if (split_domain(&r->x, level + 1, first[0], first[1], half, r->pair.size[i]))
			rc = -1;
	}
	if (rc > 0) {
		more += cost_of(r);
		pair_settle(r, !anew && more >= 0);
		if (anew || more < 0)
			r->cost += more;
		if (!anew && more < 0)
			r->yield[level].gain -= more;
	}
	r->yield[level].work += r->x.work - work;
	return rc < 0 ? -1 : 1;
}

static void ranks_seat(struct neighbourhood *r)
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
		ranks_seat(r);
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

int neighbourhood_search(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			 unsigned *slot, struct err *e)
{
	struct split_way way = { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_FREE, .quick = true };
	struct neighbourhood r = { .chance = seed };
	double cost = slots_cost(m, s, slot);
	size_t ranks = m->ranks;
	int rc = split_open(&r.x, m, s, way, seed, slot, e);

	r.on = malloc((s->n + 5 * ranks) * sizeof(*r.on));
	r.second = malloc(ranks);
	if (attempts_init(&r.attempts, s) || !r.on || !r.second)
		rc = split_no_memory(&r.x);
	if (rc || split_remember(&r.x)) {
		rc = -1;
		goto out;
	}
	r.rank = r.on + s->n;
	r.drawn = r.rank + ranks;
	r.was = r.drawn + ranks;
	r.last = r.was + ranks;
	r.best = r.last + ranks;
	memcpy(r.best, slot, ranks * sizeof(*r.best));
	for (unsigned t = 0; t < s->nlevels; t++)
		r.yield[t] = (struct yield){ LEVEL_GAIN * cost, LEVEL_WORK };
	ranks_seat(&r);
	while (rc >= 0 && s->nlevels > 1 && r.x.work < work)
		rc = pair_next(&r);
	if (rc >= 0)
		keep_best(&r);
out:
	split_close(&r.x);
	attempts_free(&r.attempts);
	free(r.on);
	free(r.second);
	return rc < 0 ? -1 : 0;
}
