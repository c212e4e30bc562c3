/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/node_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/order.h"
#include "map/engine/metropolis.h"
#include "map/engine/mapping_state.h"
#include "map/engine/split.h"

/* The least average number of ranks in a domain. */
#define LEAST_RANKS 3
/* The number of temperatures; the first and the last, relative to the average change of a swap. */
#define STEPS 200
#define WARM 0.5
#define COLD 0.003
/* Number of random swaps for that average. */
#define SAMPLES 512
/* The size of the table from which distances are drawn. */
#define CHANCES 1024
/*
 * The probability that a rank moves to a partner's own domain; otherwise the nearest other is as likely as the next two
 * together, or the next four, and so on.
 */
#define THERE 0.5
/* The number of slots tried in that domain. */
#define LOOKS 16
/* The work of drawing a swap, and of trying it besides its edges. */
#define DRAW_WORK 10
#define TRY_WORK 14

struct node_search {
	struct mapping_state state;
	const struct slot_level *domains;
	unsigned *near;			/* near[domain * n ..]: all domains, the nearest to it first */
	unsigned *best;			/* by rank: its slot */
	unsigned reach[CHANCES];	/* random ranks in the order of nearness to a partner's domain */
	struct metropolis metropolis;
	double more, least, warmth;	/* relative to the start */
	uint64_t chance;
};

/* Two slots; to == SLOT_NONE: no swap. */
struct swap {
	unsigned from, to;
	double change;
};

/* The level of the nodes, or the next wider one; NULL: not worth it. */
static const struct slot_level *domains_find(const struct matrix *m, const struct slots *s)
{
	const struct slot_level *found = NULL;

	for (unsigned t = 0; t + 1 < s->nlevels; t++) {
		const struct slot_level *own = &s->level[t];

		if (!own->is_shaped || own->n < 2 || own->n * LEAST_RANKS >= m->ranks || !domain_costs_is_worth(m, own))
			continue;
		found = own;
		if (own->n >= s->hosts)
			break;
	}
	return found;
}

static void near_fill(struct node_search *b)
{
	size_t n = b->domains->n;

	for (size_t d = 0; d < n; d++)
		order_by(&b->state.costs.between[d * n], n, &b->near[d * n]);
}

static void reach_fill(struct node_search *b)
{
	for (unsigned i = 0; i < CHANCES; i++) {
		double chance = (i + 0.5) / CHANCES, far = pow(b->domains->n, (chance - THERE) / (1 - THERE));

		b->reach[i] = chance < THERE ? 0 : far < b->domains->n ? far : b->domains->n - 1;
	}
}

static int node_search_init(struct node_search *b, const struct matrix *m, const struct slots *s, const unsigned *slot)
{
	size_t n = b->domains->n;

	b->near = malloc(n * n * sizeof(*b->near));
	b->best = malloc(m->ranks * sizeof(*b->best));
	if (mapping_state_init(&b->state, m, s, b->domains, slot) || !b->near || !b->best)
		return -1;
	memcpy(b->best, slot, m->ranks * sizeof(*slot));
	near_fill(b);
	reach_fill(b);
	metropolis_fill(&b->metropolis);
	return 0;
}

static void node_search_free(struct node_search *b)
{
	mapping_state_free(&b->state);
	free(b->near);
	free(b->best);
}

/* A domain near that of one of the rank's partners. */
static unsigned domain_draw(struct node_search *b, unsigned rank)
{
	const struct matrix *m = b->state.m;
	unsigned degree = m->row[rank + 1] - m->row[rank];
	unsigned partner = degree ? m->adj[m->row[rank] + draw_below(&b->chance, degree)] : rank;
	unsigned his = b->domains->of[b->state.at[partner].slot];

	return b->near[(size_t) his * b->domains->n + b->reach[draw_below(&b->chance, CHANCES)]];
}

/* The slot of the domain whose rank can move to `from` at the least cost, among several adjacent ones. */
static struct swap swap_choose(struct node_search *b, unsigned from, unsigned domain)
{
	unsigned first = b->domains->first[domain], count = b->domains->first[domain + 1] - first;
	unsigned looks = count < LOOKS ? count : LOOKS, at = draw_below(&b->chance, count);
	struct swap v = { from, SLOT_NONE, INFINITY };

	for (unsigned i = 0; i < looks; i++) {
		double change = mapping_state_pays_more(&b->state, first + at, from);

		if (change < v.change) {
			v.change = change;
			v.to = first + at;
		}
		if (++at == count)
			at = 0;
	}
	b->state.work += TRY_WORK + looks;
	return v;
}

/* Limited like mapping_state_swap_change. */
static struct swap swap_draw(struct node_search *b, double limit)
{
	unsigned rank = draw_below(&b->chance, b->state.m->ranks), from = b->state.at[rank].slot,
		 domain = domain_draw(b, rank);
	struct swap v = { from, SLOT_NONE, INFINITY };

	b->state.work += DRAW_WORK;
	if (domain == b->domains->of[from])
		return v;
	v = swap_choose(b, from, domain);
	v.change += mapping_state_pays_more(&b->state, from, v.to);
	if (v.change < limit)
		v.change = mapping_state_swap_change(&b->state, v.from, v.to, limit);
	return v;
}

/* The average absolute change in cost of swaps that change anything. */
static double change_sample(struct node_search *b)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		struct swap v = swap_draw(b, INFINITY);

		if (v.to == SLOT_NONE || v.change == 0)
			continue;
		sum += fabs(v.change);
		n++;
	}
	return n ? sum / n : 0;
}

/* Accepts the swap with probability exp(-more / temperature). */
static void swap_try(struct node_search *b)
{
	double limit = b->warmth * metropolis_draw(&b->metropolis, &b->chance);
	struct swap v = swap_draw(b, limit);

	if (v.change >= limit)
		return;
	mapping_state_swap(&b->state, v.from, v.to);
	b->more += v.change;
}

static void cool_down(struct node_search *b, unsigned long long work)
{
	double change = change_sample(b);

	for (unsigned i = 0; i < STEPS && change > 0; i++) {
		b->warmth = change * WARM * pow(COLD / WARM, (double) i / (STEPS - 1));
		while (b->state.work < work * (i + 1) / STEPS)
			swap_try(b);
		if (b->more >= b->least)
			continue;
		b->least = b->more;
		mapping_state_slots(&b->state, b->best);
	}
}

int node_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		struct err *e)
{
	struct node_search b = { .domains = domains_find(m, s), .chance = seed };
	int rc = 0;

	if (!b.domains)
		return 0;
	if (node_search_init(&b, m, s, slot)) {
		rc = err_set(e, "mapping: out of memory");
	} else {
		cool_down(&b, work);
		rc = split_insides(m, s, b.domains - s->level, seed, b.best, e);
	}
	if (rc == 0 && slots_cost(m, s, b.best) < slots_cost(m, s, slot))
		memcpy(slot, b.best, m->ranks * sizeof(*slot));
	node_search_free(&b);
	return rc;
}
