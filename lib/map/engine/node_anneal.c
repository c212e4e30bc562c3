/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/node_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/annealing.h"
#include "map/engine/order.h"
#include "map/engine/split.h"

/* The least average number of ranks in a domain. */
#define LEAST_RANKS 3
/* The first and the last temperature, relative to the average change of a swap. */
#define WARM 0.5
#define COLD 0.003
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
	struct annealing a;		/* first; costs are relative to the start */
	const struct slot_level *domains;
	unsigned *near;			/* near[domain * n ..]: all domains, the nearest to it first */
	unsigned reach[CHANCES];	/* random ranks in the order of nearness to a partner's domain */
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
		order_by(&b->a.state.costs.between[d * n], n, &b->near[d * n]);
}

static void reach_fill(struct node_search *b)
{
	for (unsigned i = 0; i < CHANCES; i++) {
		double chance = (i + 0.5) / CHANCES, far = pow(b->domains->n, (chance - THERE) / (1 - THERE));

		b->reach[i] = chance < THERE ? 0 : far < b->domains->n ? far : b->domains->n - 1;
	}
}

static int node_search_init(struct node_search *b, const struct matrix *m, const struct slots *s, uint64_t seed,
			    const unsigned *slot)
{
	size_t n = b->domains->n;

	b->near = malloc(n * n * sizeof(*b->near));
	if (annealing_init(&b->a, m, s, b->domains, seed, slot) || !b->near)
		return -1;
	near_fill(b);
	reach_fill(b);
	return 0;
}

/* A domain near that of one of the rank's partners. */
static unsigned domain_draw(struct node_search *b, unsigned rank)
{
	const struct matrix *m = b->a.state.m;
	unsigned degree = m->row[rank + 1] - m->row[rank];
	unsigned partner = degree ? m->adj[m->row[rank] + draw_below(&b->a.chance, degree)] : rank;
	unsigned his = b->domains->of[b->a.state.at[partner].slot];

	return b->near[(size_t) his * b->domains->n + b->reach[draw_below(&b->a.chance, CHANCES)]];
}

/* The slot of the domain whose rank can move to `from` at the least cost, among several adjacent ones. */
static struct swap swap_choose(struct node_search *b, unsigned from, unsigned domain)
{
	unsigned first = b->domains->first[domain], count = b->domains->first[domain + 1] - first;
	unsigned looks = count < LOOKS ? count : LOOKS, at = draw_below(&b->a.chance, count);
	struct swap v = { from, SLOT_NONE, INFINITY };

	for (unsigned i = 0; i < looks; i++) {
		double change = mapping_state_pays_more(&b->a.state, first + at, from);

		if (change < v.change) {
			v.change = change;
			v.to = first + at;
		}
		if (++at == count)
			at = 0;
	}
	b->a.state.work += TRY_WORK + looks;
	return v;
}

/* Limited like mapping_state_swap_change. */
static struct swap swap_draw(struct node_search *b, double limit)
{
	unsigned rank = draw_below(&b->a.chance, b->a.state.m->ranks), from = b->a.state.at[rank].slot,
		 domain = domain_draw(b, rank);
	struct swap v = { from, SLOT_NONE, INFINITY };

	b->a.state.work += DRAW_WORK;
	if (domain == b->domains->of[from])
		return v;
	v = swap_choose(b, from, domain);
	v.change += mapping_state_pays_more(&b->a.state, from, v.to);
	if (v.change < limit)
		v.change = mapping_state_swap_change(&b->a.state, v.from, v.to, limit);
	return v;
}

static double swap_sample(struct annealing *a)
{
	struct swap v = swap_draw((struct node_search *) a, INFINITY);

	return v.to == SLOT_NONE ? 0 : v.change;
}

static void swap_try(struct annealing *a)
{
	double limit = annealing_limit(a);
	struct swap v = swap_draw((struct node_search *) a, limit);

	if (v.change >= limit)
		return;
	mapping_state_swap(&a->state, v.from, v.to);
	a->cost += v.change;
}

static double swap_warmth(const struct annealing *a, double change, double done)
{
	(void) a;
	return change * WARM * pow(COLD / WARM, done);
}

int node_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		struct err *e)
{
	static const struct annealing_way way = { swap_sample, swap_try, swap_warmth, 0 };
	struct node_search b = { .domains = domains_find(m, s) };
	int rc = 0;

	if (!b.domains)
		return 0;
	if (node_search_init(&b, m, s, seed, slot)) {
		rc = err_set(e, "mapping: out of memory");
	} else {
		annealing_run(&b.a, &way, work);
		rc = split_insides(m, s, b.domains - s->level, seed, b.a.best, e);
	}
	if (rc == 0 && slots_cost(m, s, b.a.best) < slots_cost(m, s, slot))
		memcpy(slot, b.a.best, m->ranks * sizeof(*slot));
	annealing_free(&b.a);
	free(b.near);
	return rc;
}
