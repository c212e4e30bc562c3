/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/halve.h"
#include "map/split_parts.h"

/* Of what a pair costs that is parted this much at least is for its being parted. */
#define LEAST_MORE 0.125

/* What each rank pays more in the second half for those who are in neither, in the unit of the weights. */
static void pull_fill(const struct split *x, struct halves *h, const struct pair *p, const unsigned *rank)
{
	double apart = slots_distance(x->s, p->middle[0], p->middle[1]), more = apart - p->inner;

	if (more < LEAST_MORE * apart)
		more = LEAST_MORE * apart;
	for (unsigned i = 0; i < h->n && more > 0; i++)
		for (size_t a = x->m->row[rank[i]]; a < x->m->row[rank[i] + 1]; a++) {
			unsigned other = x->m->adj[a], at = x->at[other];

			if (x->local[other] == SLOT_NONE)
				h->pull[i] += x->m->weight[a] / more *
					(slots_distance(x->s, p->middle[1], at) - slots_distance(x->s, p->middle[0], at));
		}
}

/* In the order that they had. */
static void order(const struct halves *h, unsigned *rank, const unsigned *was)
{
	unsigned n = 0;

	for (unsigned half = 0; half < 2; half++)
		for (unsigned i = 0; i < h->n; i++)
			if (h->second[i] == half)
				rank[n++] = was[i];
}

static int pair_halve(struct split *x, struct halves *h, const struct pair *p, bool quick, const bool *second)
{
	struct halve_way way = { .quick = quick, .loose = x->way.loose, .seed = ++x->seed };

	if (!second)
		return halve(h, p->size[0], way) ? -1 : 1;
	memcpy(h->second, second, h->n);
	return halve_again(h, p->size[0], way);
}

int split_pair(struct split *x, const struct pair *p, unsigned *rank, bool quick, const bool *second)
{
	unsigned n = p->size[0] + p->size[1], *was = malloc((n + 1) * sizeof(*was));
	struct some_ranks some = { rank, x->local, n };
	struct halves h = { .n = 0 };
	int rc = -1;

	for (unsigned i = 0; i < n; i++)
		x->local[rank[i]] = i;
	if (was && halves_init(&h, x->m, &some) == 0) {
		if (x->way.by != SPLIT_BY_HALVES_ALONE)
			pull_fill(x, &h, p, rank);
		rc = pair_halve(x, &h, p, quick, second);
	}
	for (unsigned i = 0; i < n; i++)
		x->local[rank[i]] = SLOT_NONE;
	if (rc > 0) {
		memcpy(was, rank, n * sizeof(*was));
		order(&h, rank, was);
		for (unsigned i = 0; i < n; i++)
			x->at[rank[i]] = p->middle[i >= p->size[0]];
	}
	x->work += h.work;
	halves_free(&h);
	free(was);
	return rc < 0 ? split_no_memory(x) : rc;
}

/* The slot in the middle of some parts. */
static unsigned middle_of(const struct split *x, const struct cut *c, unsigned first, unsigned end)
{
	const unsigned *slot = &x->s->stratum[c->stratum].first[c->domain];

	return slot[first] + (slot[end] - slot[first]) / 2;
}

/* rank[n] come to be part after part. */
static int halve_parts(struct split *x, const struct cut *c, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	unsigned middle = first + (end - first) / 2;
	struct pair p = { .middle = { middle_of(x, c, first, middle), middle_of(x, c, middle, end) } };

	if (end - first < 2 || !n)
		return 0;
	for (unsigned i = first; i < middle; i++)
		p.size[0] += c->size[i];
	p.size[1] = n - p.size[0];
	p.inner = c->stratum + 1 < x->s->strata ? x->s->stratum[c->stratum + 1].typical : 0;
	if (p.size[0] && p.size[1] && split_pair(x, &p, rank, false, NULL) < 0)
		return -1;
	if (halve_parts(x, c, first, middle, rank, p.size[0]))
		return -1;
	return halve_parts(x, c, middle, end, rank + p.size[0], p.size[1]);
}

int split_by_halves(struct split *x, struct cut *c)
{
	if (halve_parts(x, c, 0, c->parts, c->rank, c->n))
		return -1;
	for (unsigned p = 0, i = 0; p < c->parts; p++)
		for (unsigned end = i + c->size[p]; i < end; i++)
			c->part[i] = p;
	return 0;
}
