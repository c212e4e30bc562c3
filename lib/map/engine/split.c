/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/split_parts.h"

#include <stdlib.h>
#include <string.h>

int split_no_memory(struct split *x)
{
	return err_set(x->err, "mapping: out of memory");
}

static int cut_init(struct split_cut *c)
{
	c->room = calloc(2 * (size_t) c->parts, sizeof(*c->room));
	c->part = calloc(c->n + 1, sizeof(*c->part));
	if (!c->room || !c->part)
		return -1;
	c->size = c->room + c->parts;
	return 0;
}

static void cut_free(struct split_cut *c)
{
	free(c->room);
	free(c->part);
}

static void sizes_even(struct split_cut *c)
{
	for (unsigned left = c->n; left;)
		for (unsigned p = 0; p < c->parts && left; p++)
			if (c->size[p] < c->room[p]) {
				c->size[p]++;
				left--;
			}
}

static void sizes_packed(struct split_cut *c)
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

/* Orders the ranks by part, keeping their order within each; then maps each part. */
static int map_parts(struct split *x, const struct split_cut *c)
{
	unsigned *sorted = malloc((c->n + 1) * sizeof(*sorted)), n = 0;
	const unsigned *first = &x->s->level[c->level].first[c->domain];
	int rc = 0;

	if (!sorted)
		return split_no_memory(x);
	for (unsigned p = 0; p < c->parts; p++)
		for (unsigned i = 0; i < c->n; i++)
			if (c->part[i] == p) {
				x->at[c->rank[i]] = first[p] + (first[p + 1] - first[p]) / 2;
				sorted[n++] = c->rank[i];
			}
	for (unsigned p = 0, from = 0; p < c->parts && rc == 0; from += c->size[p++])
		rc = split_domain(x, c->level + 1, first[p], first[p + 1], sorted + from, c->size[p]);
	free(sorted);
	return rc;
}

static int map_cut(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	static int (*const by[])(struct split *x, struct split_cut *c) = {
		[SPLIT_BY_SCOTCH] = split_by_scotch, [SPLIT_BY_BISECTION] = split_by_bisection,
		[SPLIT_BY_BISECTION_UNBIASED] = split_by_bisection,
	};
	const struct slot_level *t = &x->s->level[level];
	unsigned domain = t->of[first];
	struct split_cut c = { .rank = rank, .n = n, .level = level, .domain = domain,
			       .parts = t->of[end - 1] - domain + 1 };
	int rc = cut_init(&c) ? split_no_memory(x) : 0;

	if (rc == 0) {
		for (unsigned p = 0; p < c.parts; p++)
			c.room[p] = t->first[domain + p + 1] - t->first[domain + p];
		(x->way.sizes == SPLIT_PACKED ? sizes_packed : sizes_even)(&c);
		rc = by[x->way.by](x, &c) || map_parts(x, &c) ? -1 : 0;
	}
	cut_free(&c);
	return rc;
}

/* Within the last level single slots are equal: no choice is left. */
int split_domain(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n)
{
	while (!x->way.halved && level < x->s->nlevels && x->s->level[level].is_cut)
		level++;
	if (n && level + 1 < x->s->nlevels)
		return map_cut(x, level, first, end, rank, n);
	for (unsigned i = 0; i < n; i++)
		x->at[rank[i]] = x->slot[rank[i]] = first + i;
	return 0;
}

int split_open(struct split *x, const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed,
	       unsigned *slot, struct err *e)
{
	*x = (struct split){ .m = m, .s = s, .way = way, .seed = seed, .slot = slot, .err = e };
	x->local = malloc(m->ranks * sizeof(*x->local));
	x->at = malloc(m->ranks * sizeof(*x->at));
	if (!x->local || !x->at)
		return split_no_memory(x);
	memset(x->local, 0xff, m->ranks * sizeof(*x->local));
	for (unsigned r = 0; r < m->ranks; r++)
		x->at[r] = s->n / 2;
	return 0;
}

int split_remember(struct split *x)
{
	x->was_at = malloc(x->m->ranks * sizeof(*x->was_at));
	x->taken = malloc(x->s->n);
	x->second = malloc(x->m->ranks);
	return x->was_at && x->taken && x->second ? 0 : split_no_memory(x);
}

void split_close(struct split *x)
{
	free(x->was_at);
	free(x->taken);
	free(x->second);
	free(x->local);
	free(x->at);
}

/* Maps the ranks of each domain in turn. */
static int map_insides(struct split *x, unsigned level, unsigned *rank)
{
	const struct slot_level *t = &x->s->level[level];
	int rc = 0;

	for (unsigned d = 0; d < t->n && rc == 0; d++) {
		unsigned n = 0;

		for (unsigned r = 0; r < x->m->ranks; r++)
			if (t->of[x->was_at[r]] == d)
				rank[n++] = r;
		rc = split_domain(x, level + 1, t->first[d], t->first[d + 1], rank, n);
	}
	return rc;
}

int split_insides(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed, unsigned *slot,
		  struct err *e)
{
	struct split_way way = { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_FREE, .quick = true };
	unsigned *rank = malloc(m->ranks * sizeof(*rank));
	struct split x;
	int rc = split_open(&x, m, s, way, seed, slot, e) || split_remember(&x) ? -1 : 0;

	if (rc == 0 && !rank)
		rc = split_no_memory(&x);
	if (rc == 0) {
		memcpy(x.was_at, slot, m->ranks * sizeof(*slot));
		memcpy(x.at, slot, m->ranks * sizeof(*slot));
		rc = map_insides(&x, level, rank);
	}
	free(rank);
	split_close(&x);
	return rc;
}

int split_map(const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed, unsigned *slot,
	      struct err *e)
{
	unsigned *rank = malloc(m->ranks * sizeof(*rank));
	struct split x;
	int rc = split_open(&x, m, s, way, seed, slot, e);

	if (rc == 0 && !rank)
		rc = split_no_memory(&x);
	for (unsigned r = 0; r < m->ranks && rc == 0; r++)
		rank[r] = r;
	if (rc == 0)
		rc = split_domain(&x, 0, 0, s->n, rank, m->ranks);
	free(rank);
	split_close(&x);
	return rc;
}
