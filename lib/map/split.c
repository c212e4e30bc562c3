/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/split.h"

#include <stdlib.h>
#include <string.h>

#include "map/scotch.h"

struct split {
	const struct matrix *m;
	const struct slots *s;
	struct split_way way;
	unsigned seed;
	unsigned *slot;
	unsigned *local;	/* index of each rank among those that are being parted; SLOT_NONE: not one of them */
	struct err *err;
};

/* Some ranks, and the domains among which they are parted. */
struct cut {
	unsigned *rank, n;
	unsigned parts;
	unsigned *room, *size, *have, *part;	/* slots and ranks of each part; part[n] */
	double *talk;				/* of one rank with each part */
};

static int no_memory(struct split *x)
{
	return err_set(x->err, "mapping: out of memory");
}

static int cut_init(struct cut *c, unsigned parts)
{
	c->parts = parts;
	c->room = calloc(3 * (size_t) parts, sizeof(*c->room));
	c->part = malloc((c->n + 1) * sizeof(*c->part));
	c->talk = malloc(parts * sizeof(*c->talk));
	if (!c->room || !c->part || !c->talk)
		return -1;
	c->size = c->room + parts;
	c->have = c->size + parts;
	return 0;
}

static void cut_free(struct cut *c)
{
	free(c->room);
	free(c->part);
	free(c->talk);
}

static void sizes_even(struct cut *c)
{
	for (unsigned left = c->n; left;)
		for (unsigned p = 0; p < c->parts && left; p++)
			if (c->size[p] < c->room[p]) {
				c->size[p]++;
				left--;
			}
}

static void sizes_packed(struct cut *c)
{
	for (unsigned left = c->n; left;) {
		unsigned best = 0;

		for (unsigned p = 1; p < c->parts; p++)
			if (c->room[p] - c->size[p] > c->room[best] - c->size[best])
				best = p;
		c->size[best] = left < c->room[best] ? left : c->room[best];
		left -= c->size[best];
	}
}

/* Scotch sees those parts alone that are to have ranks. */
static int cut_by_scotch(struct split *x, struct cut *c)
{
	unsigned *seen = malloc(2 * c->parts * sizeof(*seen)), *size = seen + c->parts, n = 0;
	int rc;

	if (!seen)
		return no_memory(x);
	for (unsigned p = 0; p < c->parts; p++)
		if (c->size[p]) {
			seen[n] = p;
			size[n++] = c->size[p];
		}
	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = i;
	rc = n < 2 ? 0 : scotch_split(x->m, &(struct scotch_some){ c->rank, x->local, c->n }, n, size, x->seed, c->part, x->err);
	for (unsigned i = 0; i < c->n && rc == 0; i++)
		c->part[i] = n < 2 ? seen[0] : seen[c->part[i]];
	free(seen);
	return rc;
}

static void talk_fill(const struct split *x, struct cut *c, unsigned i)
{
	const struct matrix *m = x->m;

	memset(c->talk, 0, c->parts * sizeof(*c->talk));
	for (size_t a = m->row[c->rank[i]]; a < m->row[c->rank[i] + 1]; a++)
		if (x->local[m->adj[a]] != SLOT_NONE)
			c->talk[c->part[x->local[m->adj[a]]]] += m->weight[a];
}

/* Out of a part that has too many, the rank that loses least when it goes where there is room. */
static void move_cheapest(const struct split *x, struct cut *c)
{
	unsigned rank = 0, to = c->parts;
	double least = 0;

	for (unsigned i = 0; i < c->n; i++) {
		if (c->have[c->part[i]] <= c->size[c->part[i]])
			continue;
		talk_fill(x, c, i);
		for (unsigned p = 0; p < c->parts; p++) {
			double loss = c->talk[c->part[i]] - c->talk[p];

			if (c->have[p] < c->size[p] && (to == c->parts || loss < least)) {
				rank = i;
				to = p;
				least = loss;
			}
		}
	}
	c->have[c->part[rank]]--;
	c->have[to]++;
	c->part[rank] = to;
}

static void rebalance(const struct split *x, struct cut *c)
{
	unsigned over = 0;

	for (unsigned i = 0; i < c->n; i++)
		c->have[c->part[i]]++;
	for (unsigned p = 0; p < c->parts; p++)
		over += c->have[p] > c->size[p] ? c->have[p] - c->size[p] : 0;
	for (; over; over--)
		move_cheapest(x, c);
}

static int map_domain(struct split *x, unsigned stratum, unsigned first, unsigned end, unsigned *rank, unsigned n);

/* The ranks part after part, in the order that they had; then each part on its own. */
static int map_parts(struct split *x, unsigned stratum, unsigned domain, struct cut *c)
{
	unsigned *sorted = malloc((c->n + 1) * sizeof(*sorted)), n = 0;
	const unsigned *first = &x->s->stratum[stratum].first[domain];
	int rc = 0;

	if (!sorted)
		return no_memory(x);
	for (unsigned p = 0; p < c->parts; p++)
		for (unsigned i = 0; i < c->n; i++)
			if (c->part[i] == p)
				sorted[n++] = c->rank[i];
	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = SLOT_NONE;
	for (unsigned p = 0, from = 0; p < c->parts && rc == 0; from += c->size[p++])
		rc = map_domain(x, stratum + 1, first[p], first[p + 1], sorted + from, c->size[p]);
	free(sorted);
	return rc;
}

static int map_cut(struct split *x, unsigned stratum, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	const struct stratum *t = &x->s->stratum[stratum];
	unsigned domain = t->of[first];
	struct cut c = { .rank = rank, .n = n };
	int rc;

	if (cut_init(&c, t->of[end - 1] - domain + 1)) {
		cut_free(&c);
		return no_memory(x);
	}
	for (unsigned p = 0; p < c.parts; p++)
		c.room[p] = t->first[domain + p + 1] - t->first[domain + p];
	(x->way.packed ? sizes_packed : sizes_even)(&c);
	if ((rc = cut_by_scotch(x, &c)) == 0) {
		rebalance(x, &c);
		rc = map_parts(x, stratum, domain, &c);
	}
	cut_free(&c);
	return rc;
}

/* Between the single slots of the last stratum nothing is to choose from. */
static int map_domain(struct split *x, unsigned stratum, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	while (!x->way.halved && stratum < x->s->strata && x->s->stratum[stratum].is_cut)
		stratum++;
	if (n && stratum + 1 < x->s->strata)
		return map_cut(x, stratum, first, end, rank, n);
	for (unsigned i = 0; i < n; i++)
		x->slot[rank[i]] = first + i;
	return 0;
}

int split_map(const struct matrix *m, const struct slots *s, struct split_way way, unsigned seed, unsigned *slot, struct err *e)
{
	struct split x = { .m = m, .s = s, .way = way, .seed = seed, .slot = slot, .err = e };
	unsigned *rank = malloc(m->ranks * sizeof(*rank));
	int rc;

	x.local = malloc(m->ranks * sizeof(*x.local));
	if (!rank || !x.local) {
		rc = no_memory(&x);
	} else {
		for (unsigned r = 0; r < m->ranks; r++)
			rank[r] = r;
		memset(x.local, 0xff, m->ranks * sizeof(*x.local));
		rc = map_domain(&x, 0, 0, s->n, rank, m->ranks);
	}
	free(rank);
	free(x.local);
	return rc;
}
