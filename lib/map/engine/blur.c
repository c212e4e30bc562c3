/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/blur.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/order.h"
#include "map/engine/patience.h"
#include "map/engine/seats.h"
#include "map/engine/split.h"

/* A domain is to have so many ranks, on an average. */
#define LEAST_RANKS 3
/* How often it cools; from how warm to how cold, in averages of what a swap changes. */
#define STEPS 200
#define WARM 0.5
#define COLD 0.003
/* Swaps from which that average is taken. */
#define SAMPLES 512
/* Distances are drawn from so many. */
#define CHANCES 1024
/*
 * So often a rank goes to the very domain of a partner; else it passes 1 that is nearer as often as 2 to 3, or 4 to 7,
 * and so on.
 */
#define THERE 0.5
/* So many slots of that domain are looked at. */
#define LOOKS 16
/* What drawing a swap costs, and what trying it does beside what is looked at. */
#define DRAW_WORK 10
#define TRY_WORK 14

struct blurred {
	struct mapping_state seats;
	const struct stratum *domains;
	unsigned *near;			/* near[domain * n ..]: all of them, the nearest to it first */
	unsigned *best;			/* the slot of each rank */
	unsigned reach[CHANCES];	/* which of those near to a partner's a rank goes to */
	struct patience patience;
	double more, least, warmth;	/* than in the beginning */
	uint64_t chance;
};

/* Two slots; to SLOT_NONE: none. */
struct swap {
	unsigned from, to;
	double change;
};

/* The nodes, or what is just wider; NULL: nothing is worth it. */
static const struct stratum *domains_find(const struct matrix *m, const struct slots *s)
{
	const struct stratum *found = NULL;

	for (unsigned t = 0; t + 1 < s->strata; t++) {
		const struct stratum *own = &s->stratum[t];

		if (!own->is_shaped || own->n < 2 || own->n * LEAST_RANKS >= m->ranks || !toll_is_worth(m, own))
			continue;
		found = own;
		if (own->n >= s->hosts)
			break;
	}
	return found;
}

static void near_fill(struct blurred *b)
{
	size_t n = b->domains->n;

	for (size_t d = 0; d < n; d++)
		order_by(&b->seats.toll.between[d * n], n, &b->near[d * n]);
}

static void reach_fill(struct blurred *b)
{
	for (unsigned i = 0; i < CHANCES; i++) {
		double chance = (i + 0.5) / CHANCES, far = pow(b->domains->n, (chance - THERE) / (1 - THERE));

		b->reach[i] = chance < THERE ? 0 : far < b->domains->n ? far : b->domains->n - 1;
	}
}

static int blurred_init(struct blurred *b, const struct matrix *m, const struct slots *s, const unsigned *slot)
{
	size_t n = b->domains->n;

	b->near = malloc(n * n * sizeof(*b->near));
	b->best = malloc(m->ranks * sizeof(*b->best));
	if (seats_init(&b->seats, m, s, b->domains, slot) || !b->near || !b->best)
		return -1;
	memcpy(b->best, slot, m->ranks * sizeof(*slot));
	near_fill(b);
	reach_fill(b);
	patience_fill(&b->patience);
	return 0;
}

static void blurred_free(struct blurred *b)
{
	seats_free(&b->seats);
	free(b->near);
	free(b->best);
}

/* A domain near to that of a partner of the rank's. */
static unsigned domain_draw(struct blurred *b, unsigned rank)
{
	const struct matrix *m = b->seats.m;
	unsigned degree = m->row[rank + 1] - m->row[rank];
	unsigned partner = degree ? m->adj[m->row[rank] + draw_below(&b->chance, degree)] : rank;
	unsigned his = b->domains->of[b->seats.at[partner].slot];

	return b->near[(size_t) his * b->domains->n + b->reach[draw_below(&b->chance, CHANCES)]];
}

/* The slot of the domain whose rank goes to `from` at the least cost, of some side by side. */
static struct swap swap_choose(struct blurred *b, unsigned from, unsigned domain)
{
	unsigned first = b->domains->first[domain], count = b->domains->first[domain + 1] - first;
	unsigned looks = count < LOOKS ? count : LOOKS, at = draw_below(&b->chance, count);
	struct swap v = { from, SLOT_NONE, INFINITY };

	for (unsigned i = 0; i < looks; i++) {
		double change = seats_pays_more(&b->seats, first + at, from);

		if (change < v.change) {
			v.change = change;
			v.to = first + at;
		}
		if (++at == count)
			at = 0;
	}
	b->seats.work += TRY_WORK + looks;
	return v;
}

/* As seats_swap_change of `limit`. */
static struct swap swap_draw(struct blurred *b, double limit)
{
	unsigned rank = draw_below(&b->chance, b->seats.m->ranks), from = b->seats.at[rank].slot,
		 domain = domain_draw(b, rank);
	struct swap v = { from, SLOT_NONE, INFINITY };

	b->seats.work += DRAW_WORK;
	if (domain == b->domains->of[from])
		return v;
	v = swap_choose(b, from, domain);
	v.change += seats_pays_more(&b->seats, from, v.to);
	if (v.change < limit)
		v.change = seats_swap_change(&b->seats, v.from, v.to, limit);
	return v;
}

/* What a swap changes, on an average of those that change anything. */
static double change_sample(struct blurred *b)
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

/* It is taken with the chance exp(-more / warmth). */
static void swap_try(struct blurred *b)
{
	double limit = b->warmth * patience_draw(&b->patience, &b->chance);
	struct swap v = swap_draw(b, limit);

	if (v.change >= limit)
		return;
	seats_swap(&b->seats, v.from, v.to);
	b->more += v.change;
}

static void cool_down(struct blurred *b, unsigned long long work)
{
	double change = change_sample(b);

	for (unsigned i = 0; i < STEPS && change > 0; i++) {
		b->warmth = change * WARM * pow(COLD / WARM, (double) i / (STEPS - 1));
		while (b->seats.work < work * (i + 1) / STEPS)
			swap_try(b);
		if (b->more >= b->least)
			continue;
		b->least = b->more;
		seats_tell(&b->seats, b->best);
	}
}

int blur_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		struct err *e)
{
	struct blurred b = { .domains = domains_find(m, s), .chance = seed };
	int rc = 0;

	if (!b.domains)
		return 0;
	if (blurred_init(&b, m, s, slot)) {
		rc = err_set(e, "mapping: out of memory");
	} else {
		cool_down(&b, work);
		rc = split_insides(m, s, b.domains - s->stratum, seed, b.best, e);
	}
	if (rc == 0 && slots_cost(m, s, b.best) < slots_cost(m, s, slot))
		memcpy(slot, b.best, m->ranks * sizeof(*slot));
	blurred_free(&b);
	return rc;
}
