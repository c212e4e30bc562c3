/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/swaps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/seats.h"

/* How many domains to each side of a partner's are tried. */
#define AROUND 16
/* Rounds over all strata; most problems need three or four. */
#define ROUNDS 20
/* Of the whole cost. */
#define LEAST_GAIN 1e-12

struct polish {
	struct seats seats;
	const struct stratum *stratum;	/* whose domains are tried */
	unsigned *tried;		/* the last domain + 1 that each was tried against */
	double gain;			/* the least that is one */
	unsigned long long limit;
};

/* A gain in the last digits is none: it may be one of rounding, and come back for ever. */
static bool try_exchange(struct polish *p, struct run a, struct run b)
{
	double change = a.count > 1 ? seats_change(&p->seats, a, b) : seats_swap_change(&p->seats, a.first, b.first, -p->gain);

	if (change >= -p->gain)
		return false;
	seats_exchange(&p->seats, a, b);
	return true;
}

/* Of a larger domain its first slots are exchanged. */
static bool try_around(struct polish *p, unsigned mine, unsigned partner)
{
	unsigned from = partner > AROUND ? partner - AROUND : 0;
	bool gained = false;

	for (unsigned d = from; d < p->stratum->n && d <= partner + AROUND && p->seats.work < p->limit; d++) {
		struct run other = seats_run(p->stratum, d, SLOT_NONE), own = seats_run(p->stratum, mine, other.count);

		p->seats.work++;
		if (d == mine || p->tried[d] == mine + 1)
			continue;
		p->tried[d] = mine + 1;
		other.count = own.count;
		gained |= try_exchange(p, own, other);
	}
	return gained;
}

static bool try_domain(struct polish *p, unsigned mine)
{
	struct run r = seats_run(p->stratum, mine, SLOT_NONE);
	const struct matrix *m = p->seats.m;
	bool gained = false;

	for (unsigned at = r.first; at < r.first + r.count; at++)
		for (size_t i = 0; p->seats.rank[at] != SLOT_NONE; i++) {
			unsigned rank = p->seats.rank[at];	/* an exchange may have put another one here */

			if (m->row[rank] + i >= m->row[rank + 1])
				break;
			gained |= try_around(p, mine, p->stratum->of[p->seats.at[m->adj[m->row[rank] + i]].slot]);
		}
	return gained;
}

static bool stratum_polish(struct polish *p, const struct stratum *t)
{
	bool gained = false;

	p->stratum = t;
	memset(p->tried, 0, t->n * sizeof(*p->tried));
	for (unsigned d = 0; d < t->n && p->seats.work < p->limit; d++)
		gained |= try_domain(p, d);
	return gained;
}

static void polish_rounds(struct polish *p)
{
	bool gained = true;

	for (int round = 0; gained && round < ROUNDS; round++) {
		gained = false;
		for (unsigned t = 0; t < p->seats.s->strata; t++)
			gained |= stratum_polish(p, &p->seats.s->stratum[t]);
	}
}

int swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long work, unsigned *slot)
{
	struct polish p = { .limit = work, .tried = malloc(s->n * sizeof(*p.tried)) };
	int rc = p.tried ? seats_init(&p.seats, m, s, slot) : -1;

	if (rc == 0) {
		p.gain = LEAST_GAIN * slots_cost(m, s, slot);
		polish_rounds(&p);
		seats_tell(&p.seats, slot);
	}
	seats_free(&p.seats);
	free(p.tried);
	return rc;
}
