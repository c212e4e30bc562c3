/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/seats.h"

#include <stdlib.h>
#include <string.h>

int seats_init(struct seats *t, const struct matrix *m, const struct slots *s, unsigned *slot)
{
	*t = (struct seats){ .m = m, .s = s, .slot = slot, .rank = malloc(s->n * sizeof(*t->rank)) };
	if (!t->rank)
		return -1;
	memset(t->rank, 0xff, s->n * sizeof(*t->rank));
	for (unsigned r = 0; r < m->ranks; r++)
		t->rank[slot[r]] = r;
	return 0;
}

void seats_free(struct seats *t)
{
	free(t->rank);
}

struct run seats_run(const struct stratum *t, unsigned domain, unsigned most)
{
	unsigned first = t->first[domain], count = t->first[domain + 1] - first;

	return (struct run){ first, count < most ? count : most };
}

static void put(struct seats *t, unsigned rank, unsigned at)
{
	t->rank[at] = rank;
	if (rank != SLOT_NONE)
		t->slot[rank] = at;
}

void seats_exchange(struct seats *t, struct run a, struct run b)
{
	for (unsigned i = 0; i < a.count; i++) {
		unsigned rank = t->rank[a.first + i];

		put(t, t->rank[b.first + i], a.first + i);
		put(t, rank, b.first + i);
	}
}

static bool run_has(struct run r, unsigned slot)
{
	return slot - r.first < r.count;
}

/* A pair within the two is met from both of its ends, and counts half at each. */
static double run_cost(struct seats *t, struct run own, struct run other)
{
	const struct matrix *m = t->m;
	double cost = 0;

	for (unsigned at = own.first; at < own.first + own.count; at++) {
		unsigned rank = t->rank[at];

		if (rank == SLOT_NONE)
			continue;
		t->work += m->row[rank + 1] - m->row[rank];
		for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++) {
			unsigned to = t->slot[m->adj[i]];
			double pays = m->weight[i] * slots_distance(t->s, at, to);

			cost += run_has(own, to) || run_has(other, to) ? pays / 2 : pays;
		}
	}
	return cost;
}

double seats_cost(struct seats *t, struct run a, struct run b)
{
	return run_cost(t, a, b) + run_cost(t, b, a);
}
