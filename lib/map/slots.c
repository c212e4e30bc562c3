/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/slots.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BITS 64

/* A slot's path from the top, and the level that each stratum is of. */
struct reading {
	const struct places *p;
	struct slots *s;
	int level[PLACES_LEVELS + 1];	/* PLACES_LEVELS: the last, which parts what shares a place */
	int low[PLACES_LEVELS + 1];	/* the lowest bit of each stratum */
};

static const struct place *place_of(const struct reading *r, unsigned slot)
{
	return &r->p->place[r->s->place[slot]];
}

static int path_order(const void *x, const void *y, void *places)
{
	const unsigned *i = x, *j = y;
	const struct place *a = (const struct place *) places + *i, *b = (const struct place *) places + *j;

	for (int l = 0; l < PLACES_LEVELS; l++)
		if (a->path[l] != b->path[l])
			return a->path[l] < b->path[l] ? -1 : 1;
	return (*i > *j) - (*i < *j);
}

static void slots_sort(const struct reading *r)
{
	struct slots *s = r->s;

	for (unsigned i = 0; i < s->n; i++)
		s->place[i] = i;
	qsort_r(s->place, s->n, sizeof(*s->place), path_order, r->p->place);
	for (unsigned i = 0; i < s->n; i++)
		s->host[i] = place_of(r, i)->host;
}

/* The first level at which a slot differs from the one before; PLACES_LEVELS when they share a place. */
static int parted_at(const struct reading *r, unsigned slot)
{
	const struct place *a = place_of(r, slot - 1), *b = place_of(r, slot);
	int l = 0;

	while (l < PLACES_LEVELS && a->path[l] == b->path[l])
		l++;
	return l;
}

static int stratum_fill(struct stratum *t, const unsigned char *parted, unsigned n, int level, unsigned domains)
{
	t->first = malloc((domains + 1) * sizeof(*t->first));
	t->of = malloc(n * sizeof(*t->of));
	if (!t->first || !t->of)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		if (!i || parted[i] <= level)
			t->first[t->n++] = i;
		t->of[i] = t->n - 1;
	}
	t->first[t->n] = n;
	return 0;
}

static int strata_fill(struct reading *r, unsigned char *parted)
{
	struct slots *s = r->s;
	unsigned domains = 1, found[PLACES_LEVELS + 1] = {0};

	for (unsigned i = 1; i < s->n; i++)
		found[parted[i] = parted_at(r, i)]++;
	for (int l = 0; l <= PLACES_LEVELS; l++) {
		if (!found[l])
			continue;
		domains += found[l];
		r->level[s->strata] = l;
		if (stratum_fill(&s->stratum[s->strata++], parted, s->n, l, domains))
			return -1;
	}
	return 0;
}

static int strata_find(struct reading *r)
{
	unsigned char *parted = calloc(r->s->n, 1);
	int rc = parted ? strata_fill(r, parted) : -1;

	free(parted);
	return rc;
}

static int bits_for(unsigned count)
{
	return count > 1 ? 32 - __builtin_clz(count - 1) : 0;
}

/* The number of a domain within the one above. */
static unsigned digit_of(const struct slots *s, unsigned stratum, unsigned slot)
{
	unsigned own = s->stratum[stratum].of[slot];

	return stratum ? own - s->stratum[stratum].of[s->stratum[stratum - 1].first[s->stratum[stratum - 1].of[slot]]] : own;
}

/* Slots that share a place have one code. Bit 0 is always 0, so that slots_distance has a bit for equal ones. */
static int codes_fill(struct reading *r)
{
	struct slots *s = r->s;
	int low = 1;

	for (unsigned t = s->strata; t--;) {
		unsigned most = 1;

		r->low[t] = low;
		if (r->level[t] == PLACES_LEVELS)
			continue;
		for (unsigned i = 0; i < s->n; i++)
			if (digit_of(s, t, i) >= most)
				most = digit_of(s, t, i) + 1;
		if (low + bits_for(most) > CODE_BITS)
			return -1;
		for (unsigned i = 0; i < s->n; i++)
			s->code[i] |= (uint64_t) digit_of(s, t, i) << low;
		low += bits_for(most);
	}
	return 0;
}

/* The lowest stratum at which a pair's cost depends on more than its level; -1: none. */
static int table_stratum(const struct reading *r)
{
	const struct hierarchy *net = r->p->network;
	int found = -1;

	if (r->p->distance)
		return (int) r->s->strata - 1;
	for (unsigned t = 0; net && t < r->s->strata; t++)
		if (r->level[t] < (int) net->nlevels && net->level[r->level[t]].form != HIERARCHY_TREE)
			found = t;
	return found;
}

static int table_fill(struct reading *r, int stratum)
{
	struct slots *s = r->s;
	const struct stratum *t = &s->stratum[stratum];

	s->rows = t->n;
	if (!(s->table = malloc((size_t) t->n * t->n * sizeof(*s->table))))
		return -1;
	memcpy(s->row, t->of, s->n * sizeof(*s->row));
	for (unsigned a = 0; a < t->n; a++)
		for (unsigned b = 0; b < t->n; b++)
			s->table[(size_t) a * t->n + b] = places_distance(r->p, s->place[t->first[a]], s->place[t->first[b]]);
	return 0;
}

static void costs_fill(struct reading *r, int table)
{
	struct slots *s = r->s;

	for (unsigned k = 0; k < r->p->nkinds; k++)
		for (unsigned t = 0; t < s->strata; t++)
			for (int bit = r->low[t]; bit < (t ? r->low[t - 1] : CODE_BITS) && r->level[t] < PLACES_LEVELS; bit++)
				s->costs[k * CODE_BITS + bit] = (int) t <= table ? -1.0 : r->p->kinds[k].cost[r->level[t]];
	for (unsigned i = 0; i < s->n; i++)
		s->cost[i] = &s->costs[place_of(r, i)->kind * CODE_BITS];
}

/* Between a domain's first slot and those of its neighbours: where all cost the same that is it. */
static void typical_fill(struct slots *s)
{
	for (unsigned t = 0; t < s->strata; t++) {
		const struct stratum *above = t ? &s->stratum[t - 1] : NULL, *own = &s->stratum[t];
		double sum = 0, pairs = 0;

		for (unsigned d = 1; d < own->n; d++)
			for (unsigned back = 1; back <= d && back <= 16; back++) {
				unsigned a = own->first[d], b = own->first[d - back];

				if (above && above->of[a] != above->of[b])
					break;
				sum += slots_distance(s, a, b);
				pairs++;
			}
		s->typical[t] = pairs > 0 ? sum / pairs : 0;
	}
}

static int arrays_new(struct slots *s, const struct places *p)
{
	s->place = malloc(s->n * sizeof(*s->place));
	s->host = malloc(s->n * sizeof(*s->host));
	s->row = calloc(s->n, sizeof(*s->row));
	s->code = calloc(s->n, sizeof(*s->code));
	s->cost = malloc(s->n * sizeof(*s->cost));
	s->costs = calloc((size_t) p->nkinds * CODE_BITS, sizeof(*s->costs));
	return s->place && s->host && s->row && s->code && s->cost && s->costs ? 0 : -1;
}

static int slots_fill(struct slots *s, const struct places *p, struct err *e)
{
	struct reading r = { .p = p, .s = s };
	int table;

	if (arrays_new(s, p))
		return err_set(e, "mapping: out of memory");
	slots_sort(&r);
	if (strata_find(&r))
		return err_set(e, "mapping: out of memory");
	if (codes_fill(&r))
		return err_set(e, "mapping: the tree of places has too many levels, or too wide ones");
	table = table_stratum(&r);
	if (table >= 0 && table_fill(&r, table))
		return err_set(e, "mapping: out of memory");
	costs_fill(&r, table);
	typical_fill(s);
	return 0;
}

struct slots *slots_new(const struct places *p, struct err *e)
{
	struct slots *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, "mapping: out of memory");
		return NULL;
	}
	s->n = p->nplaces;
	s->hosts = p->nhosts;
	if (slots_fill(s, p, e) == 0)
		return s;
	slots_free(s);
	return NULL;
}

void slots_free(struct slots *s)
{
	if (!s)
		return;
	for (unsigned t = 0; t < s->strata; t++) {
		free(s->stratum[t].first);
		free(s->stratum[t].of);
	}
	free(s->place);
	free(s->host);
	free(s->row);
	free(s->code);
	free(s->cost);
	free(s->costs);
	free(s->table);
	free(s);
}

double slots_cost(const struct matrix *m, const struct slots *s, const unsigned *slot)
{
	double cost = 0;

	for (unsigned r = 0; r < m->ranks; r++)
		cost += slots_rank_cost(m, s, slot, r, slot[r]);
	return cost / 2;
}

double slots_busiest(const struct matrix *m, const struct slots *s, const unsigned *slot, double *load)
{
	double most = 0;

	memset(load, 0, s->hosts * sizeof(*load));
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			if (s->host[slot[r]] != s->host[slot[m->adj[i]]])
				load[s->host[slot[r]]] += m->weight[i];
	for (unsigned h = 0; h < s->hosts; h++)
		if (load[h] > most)
			most = load[h];
	return most;
}
