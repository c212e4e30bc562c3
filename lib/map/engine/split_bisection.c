/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/engine/bisection.h"
#include "map/engine/split_parts.h"
#include "map/engine/tuning.h"

/* The additional cost of each rank in the second half due to ranks in neither half, in the unit of the weights. */
static void bias_fill(const struct split *x, struct bisection *h, const struct split_halves *p, const unsigned *rank)
{
	double apart = slots_distance(x->s, p->middle[0], p->middle[1]), more = apart - p->inner;

	if (more < LEAST_APART * apart)
		more = LEAST_APART * apart;
	for (unsigned i = 0; i < h->ranks && more > 0; i++)
		for (size_t a = x->m->row[rank[i]]; a < x->m->row[rank[i] + 1]; a++) {
			unsigned other = x->m->adj[a], at = x->at[other];

			if (x->local[other] == SLOT_NONE)
				h->bias[i] += x->m->weight[a] / more *
					(slots_distance(x->s, p->middle[1], at) -
					 slots_distance(x->s, p->middle[0], at));
		}
}

/* Orders the ranks by half, keeping their order within each. */
static void pair_ranks(struct split *x, const struct bisection *h, struct split_halves *p, unsigned *rank,
		       const unsigned *was)
{
	unsigned n = 0;

	for (unsigned half = 0; half < 2; half++) {
		p->size[half] = 0;
		for (unsigned i = 0; i < h->ranks; i++)
			if (h->second[i] == half) {
				x->at[was[i]] = p->middle[half];
				rank[n++] = was[i];
				p->size[half]++;
			}
	}
}

/* The first half gets as many empty slots as it lacks ranks. */
static void empties_part(struct bisection *h, unsigned first)
{
	for (unsigned i = 0; i < h->ranks; i++)
		first -= !h->second[i];
	for (unsigned i = h->ranks; i < h->n; i++)
		h->second[i] = i - h->ranks >= first;
}

static int pair_halve(struct split *x, struct bisection *h, const struct split_halves *p, bool quick)
{
	struct bisection_way way = { .quick = quick, .loose = x->way.loose, .seed = ++x->seed };

	if (p->from == SPLIT_ANEW)
		return bisection_run(h, p->most, way) ? -1 : 1;
	memcpy(h->second, p->second, h->ranks);
	empties_part(h, p->most);
	if (p->from == SPLIT_BEAT)
		return bisection_again(h, p->most, way);
	bisection_cut(h);
	bisection_refine(h);
	return 1;
}

int split_pair(struct split *x, struct split_halves *p, unsigned *rank, bool quick)
{
	unsigned n = p->n, *was = malloc((n + 1) * sizeof(*was));
	struct matrix_ranks some = { rank, x->local, n };
	struct bisection h = { .n = 0 };
	int rc = -1;

	for (unsigned i = 0; i < n; i++) {
		x->local[rank[i]] = i;
		x->work += WORK_GATHER * (x->m->row[rank[i] + 1] - x->m->row[rank[i]]);
	}
	if (was && bisection_init(&h, x->m, &some, p->most - p->least) == 0) {
		if (x->way.by != SPLIT_BY_BISECTION_UNBIASED)
			bias_fill(x, &h, p, rank);
		rc = pair_halve(x, &h, p, quick);
	}
	for (unsigned i = 0; i < n; i++)
		x->local[rank[i]] = SLOT_NONE;
	if (rc > 0) {
		memcpy(was, rank, n * sizeof(*was));
		pair_ranks(x, &h, p, rank, was);
	}
	x->work += h.work;
	bisection_free(&h);
	free(was);
	return rc < 0 ? split_no_memory(x) : rc;
}

/* The slot in the middle of a range of parts. */
static unsigned middle_of(const struct split *x, const struct split_cut *c, unsigned first, unsigned end)
{
	const unsigned *slot = &x->s->level[c->level].first[c->domain];

	return slot[first] + (slot[end] - slot[first]) / 2;
}

/* The most ranks that a range of parts may hold. */
static unsigned most_of(const struct split *x, const struct split_cut *c, unsigned first, unsigned end)
{
	unsigned sum = 0;

	for (unsigned i = first; i < end; i++)
		sum += x->way.sizes == SPLIT_FREE ? c->room[i] : c->size[i];
	return sum;
}

/* Ranks from elsewhere get free slots of this range. */
static void move_in(struct split *x, const unsigned *rank, unsigned n, unsigned first, unsigned end)
{
	unsigned free = first;

	memset(x->taken + first, false, end - first);
	for (unsigned i = 0; i < n; i++)
		if (x->was_at[rank[i]] - first < end - first)
			x->taken[x->was_at[rank[i]]] = true;
	for (unsigned i = 0; i < n; i++)
		if (x->was_at[rank[i]] - first >= end - first) {
			while (x->taken[free])
				free++;
			x->was_at[rank[i]] = free++;
		}
}

/* The halves in which these ranks were: the slots first .. border-1, and those up to end. */
static void pair_as_was(struct split *x, struct split_halves *p, const unsigned *rank, unsigned first, unsigned border,
			unsigned end)
{
	move_in(x, rank, p->n, first, end);
	for (unsigned i = 0; i < p->n; i++)
		x->second[i] = x->was_at[rank[i]] >= border;
	p->second = x->second;
	p->from = SPLIT_MEND;
}

/* Orders rank[n] by part. */
static int bisect_parts(struct split *x, struct split_cut *c, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	unsigned middle = first + (end - first) / 2, most[2] = { most_of(x, c, first, middle),
								 most_of(x, c, middle, end) };
	const unsigned *slot = &x->s->level[c->level].first[c->domain];
	struct split_halves p = { .n = n };

	if (end - first < 2) {
		c->size[first] = n;
		return 0;
	}
	p.middle[0] = middle_of(x, c, first, middle);
	p.middle[1] = middle_of(x, c, middle, end);
	p.inner = c->level + 1 < x->s->nlevels ? x->s->level[c->level + 1].typical : 0;
	p.least = n > most[1] ? n - most[1] : 0;
	p.most = n < most[0] ? n : most[0];
	p.size[0] = p.most;
	p.size[1] = n - p.most;
	if (x->was_at)
		pair_as_was(x, &p, rank, slot[first], slot[middle], slot[end]);
	if ((p.least < p.most || (p.most && p.most < n)) && split_pair(x, &p, rank, x->way.quick) < 0)
		return -1;
	if (bisect_parts(x, c, first, middle, rank, p.size[0]))
		return -1;
	return bisect_parts(x, c, middle, end, rank + p.size[0], p.size[1]);
}

int split_by_bisection(struct split *x, struct split_cut *c)
{
	if (bisect_parts(x, c, 0, c->parts, c->rank, c->n))
		return -1;
	for (unsigned p = 0, i = 0; p < c->parts; p++)
		for (unsigned end = i + c->size[p]; i < end; i++)
			c->part[i] = p;
	return 0;
}
