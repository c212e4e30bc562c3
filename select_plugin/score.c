/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score.h"

#include <stdlib.h>
#include <string.h>

struct tree {
	const struct shape *shape;
	const bool *free;
	unsigned *before;	/* before[c]: free cores below core c; before[cores]: all of them */
	size_t *next;		/* next[d]: the domain that follows d and all that is in it */
	bool *chosen;
	bool failed;
};

/* The parts of a domain that have free cores, and which of them are taken. */
struct parts {
	struct part {
		size_t domain;
		unsigned free, take;
	} *part;
	size_t count;
};

static unsigned domain_free(const struct tree *t, size_t d)
{
	const struct domain *at = &t->shape->domains[d];

	return t->before[at->first + at->cores] - t->before[at->first];
}

static void cost_add(struct score_cost *sum, const struct score_cost *c)
{
	for (int r = 0; r < SCORE_ROWS; r++)
		for (int l = 0; l < LEVEL_CORE; l++)
			sum->row[r][l] += c->row[r][l];
}

int score_compare(const struct score_cost *a, const struct score_cost *b)
{
	if (a->beyond != b->beyond)
		return a->beyond < b->beyond ? -1 : 1;
	for (int r = 0; r < SCORE_ROWS; r++)
		for (int l = 0; l < LEVEL_CORE; l++)
			if (a->row[r][l] != b->row[r][l])
				return a->row[r][l] < b->row[r][l] ? -1 : 1;
	return 0;
}

static struct score_cost domain_cost(const struct tree *t, size_t d, unsigned take)
{
	const struct domain *at = &t->shape->domains[d];
	unsigned have = domain_free(t, d);
	struct score_cost c = {0};

	if (at->level == LEVEL_CORE)
		return c;
	c.row[SCORE_TOUCHED][at->level] = 1;
	c.row[SCORE_OPEN][at->level] = take < have;
	c.row[SCORE_BROKEN][at->level] = take < have && have == at->cores;
	c.row[SCORE_LEFT][at->level] = have - take;
	return c;
}

static struct score_cost take_all(struct tree *t, size_t d, bool mark)
{
	const struct domain *at = &t->shape->domains[d];
	struct score_cost sum = {0}, c;

	for (size_t i = d; i < t->next[d]; i++) {
		if (!domain_free(t, i))
			continue;
		c = domain_cost(t, i, domain_free(t, i));
		cost_add(&sum, &c);
	}
	for (unsigned i = at->first; mark && i < at->first + at->cores; i++)
		t->chosen[i] = t->free[i];
	return sum;
}

static int by_free_downward(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->free < y->free) - (x->free > y->free);
}

/* The fewest parts that hold `take` together: the largest ones do; *most is all that these hold. */
static unsigned fewest_parts(const struct parts *p, unsigned take, unsigned *most)
{
	struct part *sorted = malloc(p->count * sizeof(*sorted));
	unsigned n = 0;

	*most = 0;
	if (!sorted)
		return 0;
	memcpy(sorted, p->part, p->count * sizeof(*sorted));
	qsort(sorted, p->count, sizeof(*sorted), by_free_downward);
	while (*most < take)
		*most += sorted[n++].free;
	free(sorted);
	return n;
}

/*
 * Take the n parts that hold at least `take`, with the least left over. first[j][s] is 1 + the first part with which j parts
 * can hold s in all; the part before it in such a choice is then always an earlier one.
 */
static int parts_choose(struct parts *p, unsigned take)
{
	unsigned most, n = fewest_parts(p, take, &most), s;
	size_t width = (size_t) most + 1;
	unsigned *first = n ? calloc((n + 1) * width, sizeof(*first)) : NULL;

	if (!first)
		return -1;
	first[0] = 1;
	for (size_t i = 0; i < p->count; i++)
		for (unsigned j = n; j > 0; j--)
			for (s = p->part[i].free; s <= most; s++)
				if (!first[j * width + s] && first[(j - 1) * width + s - p->part[i].free])
					first[j * width + s] = i + 1;
	for (s = take; !first[n * width + s];)
		s++;
	for (unsigned j = n; j > 0; j--) {
		struct part *part = &p->part[first[j * width + s] - 1];

		part->take = part->free;
		s -= part->free;
	}
	free(first);
	return 0;
}

static int parts_of(const struct tree *t, size_t d, struct parts *p)
{
	size_t n = 0;

	for (size_t i = d + 1; i < t->next[d]; i = t->next[i])
		n += domain_free(t, i) > 0;
	*p = (struct parts){ .part = malloc((n + 1) * sizeof(*p->part)) };
	if (!p->part)
		return -1;
	for (size_t i = d + 1; i < t->next[d]; i = t->next[i])
		if (domain_free(t, i))
			p->part[p->count++] = (struct part){ .domain = i, .free = domain_free(t, i) };
	return 0;
}

static struct score_cost take_some(struct tree *t, size_t d, unsigned take, bool mark);

/* The best part that holds all of `take`, with its cost; NULL when none does. */
static struct part *best_single(struct tree *t, struct parts *p, unsigned take, struct score_cost *cost)
{
	struct part *best = NULL;

	for (size_t i = 0; i < p->count; i++) {
		struct score_cost c;

		if (p->part[i].free < take)
			continue;
		c = take_some(t, p->part[i].domain, take, false);
		if (best && score_compare(&c, cost) >= 0)
			continue;
		best = &p->part[i];
		*cost = c;
	}
	return best;
}

/* Of the parts taken whole, leave `over` cores in the one where that costs least. None holds so few: one part less would do. */
static void leave_over(struct tree *t, struct parts *p, unsigned over)
{
	struct part *best = NULL;
	struct score_cost least = {0};

	for (size_t i = 0; over && i < p->count; i++) {
		struct score_cost sum = {0};

		if (!p->part[i].take)
			continue;
		for (size_t j = 0; j < p->count; j++) {
			struct score_cost c;

			if (!p->part[j].take)
				continue;
			c = take_some(t, p->part[j].domain, p->part[j].free - (i == j ? over : 0), false);
			cost_add(&sum, &c);
		}
		if (best && score_compare(&sum, &least) >= 0)
			continue;
		best = &p->part[i];
		least = sum;
	}
	if (best)
		best->take -= over;
}

static struct score_cost take_several(struct tree *t, struct parts *p, unsigned take, bool mark)
{
	struct score_cost sum = {0}, c;
	unsigned held = 0;

	if (parts_choose(p, take)) {
		t->failed = true;
		return sum;
	}
	for (size_t i = 0; i < p->count; i++)
		held += p->part[i].take;
	leave_over(t, p, held - take);
	for (size_t i = 0; i < p->count; i++) {
		if (!p->part[i].take)
			continue;
		c = take_some(t, p->part[i].domain, p->part[i].take, mark);
		cost_add(&sum, &c);
	}
	return sum;
}

/* Parts of one free core each are alike: the first ones, without the search. */
static struct score_cost take_first(struct tree *t, struct parts *p, unsigned take, bool mark)
{
	struct score_cost sum = {0}, c;

	for (size_t i = 0; i < take; i++) {
		c = take_all(t, p->part[i].domain, mark);
		cost_add(&sum, &c);
	}
	return sum;
}

static bool parts_are_cores(const struct tree *t, const struct parts *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (t->shape->domains[p->part[i].domain].cores > 1)
			return false;
	return true;
}

/* The best `take` of the free cores in domain d, of which there are as many: their cost, and chosen[] when mark is set. */
static struct score_cost take_some(struct tree *t, size_t d, unsigned take, bool mark)
{
	struct score_cost sum = domain_cost(t, d, take), c;
	struct part *single;
	struct parts p;

	if (take == domain_free(t, d))
		return take_all(t, d, mark);
	if (t->failed || parts_of(t, d, &p)) {
		t->failed = true;
		return sum;
	}
	if (parts_are_cores(t, &p))
		c = take_first(t, &p, take, mark);
	else if (!(single = best_single(t, &p, take, &c)))
		c = take_several(t, &p, take, mark);
	else if (mark)
		c = take_some(t, single->domain, take, true);
	cost_add(&sum, &c);
	free(p.part);
	return sum;
}

static int tree_init(struct tree *t, const struct shape *shape, const bool *free_cores)
{
	*t = (struct tree){
		.shape = shape,
		.free = free_cores,
		.before = calloc(shape->cores + 1, sizeof(*t->before)),
		.next = malloc(shape->ndomains * sizeof(*t->next)),
		.chosen = calloc(shape->cores, sizeof(*t->chosen)),
	};
	if (!t->before || !t->next || !t->chosen)
		return -1;
	for (unsigned i = 0; i < shape->cores; i++)
		t->before[i + 1] = t->before[i] + free_cores[i];
	for (size_t d = 0; d < shape->ndomains; d++)
		t->next[d] = d + 1;
	for (size_t d = shape->ndomains - 1; d > 0; d--) {
		size_t *outer = &t->next[shape->domains[d].parent];

		if (*outer < t->next[d])
			*outer = t->next[d];
	}
	return 0;
}

static void tree_fini(struct tree *t)
{
	free(t->before);
	free(t->next);
	free(t->chosen);
}

/* hwloc leaves out a level that would be the same as the one above. */
static void count_as_above(unsigned *touched)
{
	for (int l = LEVEL_PACKAGE; l < LEVEL_CORE; l++)
		if (touched[l] < touched[l - 1])
			touched[l] = touched[l - 1];
}

/* Caches that it does not tell of are shared by no two cores. */
static void count_as_below(unsigned *touched, unsigned cores)
{
	if (!touched[LEVEL_L2])
		touched[LEVEL_L2] = cores;
	if (!touched[LEVEL_L3])
		touched[LEVEL_L3] = touched[LEVEL_L2];
}

static void cost_finish(struct score_cost *c, const struct score_need *need)
{
	unsigned *touched = c->row[SCORE_TOUCHED], wanted[LEVEL_CORE];

	memcpy(wanted, touched, sizeof(wanted));
	count_as_above(wanted);
	c->beyond = need->within < LEVEL_CORE ? wanted[need->within] - 1 : 0;
	count_as_below(touched, need->cores);
	count_as_above(touched);
}

int score_pick(const struct shape *shape, const bool *free_cores, const struct score_need *need, bool *chosen,
	       struct score_cost *cost)
{
	struct score_cost c;
	struct tree t;
	int rc = -1;

	if (!tree_init(&t, shape, free_cores) && need->cores && need->cores <= t.before[shape->cores]) {
		c = take_some(&t, 0, need->cores, true);
		cost_finish(&c, need);
		rc = t.failed ? -1 : 0;
	}
	if (!rc) {
		memcpy(chosen, t.chosen, shape->cores * sizeof(*chosen));
		*cost = c;
	}
	tree_fini(&t);
	return rc;
}
