/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/slots.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/paths.h"

#define CODE_BITS 64

struct reading {
	const struct places *p;
	struct slots *s;
	struct paths paths;
	unsigned path_level[PATHS_LEVELS + 1];	/* by level of slots; slots that share a place: beyond the last */
	int low[PATHS_LEVELS + 1];	/* the lowest bit of each level */
	int table;			/* the lowest level where costs depend on the pair, too; -1: none */
};

static const struct place *place_of(const struct reading *r, unsigned slot)
{
	return &r->p->place[r->s->place[slot]];
}

static int path_order(const void *x, const void *y, void *paths)
{
	const struct paths *t = paths;
	unsigned a = *(const unsigned *) x, b = *(const unsigned *) y, l = paths_parted(t, a, b);

	if (l == t->levels)
		return (a > b) - (a < b);
	return t->number[(size_t) a * t->levels + l] < t->number[(size_t) b * t->levels + l] ? -1 : 1;
}

static void slots_sort(struct reading *r)
{
	struct slots *s = r->s;

	for (unsigned i = 0; i < s->n; i++)
		s->place[i] = s->spot[i].slot = i;
	qsort_r(s->place, s->n, sizeof(*s->place), path_order, &r->paths);
	for (unsigned i = 0; i < s->n; i++)
		s->host[i] = place_of(r, i)->host;
}

static int level_fill(struct slot_level *t, const unsigned char *parted, unsigned n, unsigned level, unsigned domains)
{
	t->first = malloc((domains + 1) * sizeof(*t->first));
	t->of = malloc(n * sizeof(*t->of));
	t->shape = calloc(domains, sizeof(*t->shape));
	if (!t->first || !t->of || !t->shape)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		if (!i || parted[i] <= level)
			t->first[t->n++] = i;
		t->of[i] = t->n - 1;
	}
	t->first[t->n] = n;
	return 0;
}

static int levels_fill(struct reading *r, unsigned char *parted)
{
	struct slots *s = r->s;
	unsigned domains = 1, found[PATHS_LEVELS + 1] = {0};

	for (unsigned i = 1; i < s->n; i++)
		found[parted[i] = paths_parted(&r->paths, s->place[i - 1], s->place[i])]++;
	for (unsigned l = 0; l <= r->paths.levels; l++) {
		if (!found[l])
			continue;
		domains += found[l];
		r->path_level[s->nlevels] = l;
		if (level_fill(&s->level[s->nlevels++], parted, s->n, l, domains))
			return -1;
	}
	return 0;
}

static int levels_find(struct reading *r)
{
	unsigned char *parted = calloc(r->s->n, 1);
	int rc = parted ? levels_fill(r, parted) : -1;

	free(parted);
	return rc;
}

static int bits_for(unsigned count)
{
	return count > 1 ? 32 - __builtin_clz(count - 1) : 0;
}

/* The number of a domain within its parent. */
static unsigned digit_of(const struct slots *s, unsigned level, unsigned slot)
{
	unsigned own = s->level[level].of[slot];

	return level ? own - s->level[level].of[s->level[level - 1].first[s->level[level - 1].of[slot]]] : own;
}

/* The level of the places for a level of slots; beyond all: slots that share a place. */
static unsigned level_of(const struct reading *r, unsigned level)
{
	return r->path_level[level] < r->paths.levels ? r->paths.level[r->path_level[level]] : PATHS_LEVELS;
}

/* Whether a pair's cost depends on more than the level at which it parts. */
static bool is_told_by_table(const struct reading *r, unsigned level)
{
	const struct hierarchy *net = r->p->network;
	unsigned l = level_of(r, level);

	if (r->p->distance)
		return !r->paths.is_tree;
	return net && l < net->nlevels && net->level[l].form != HIERARCHY_TREE;
}

static void levels_judge(struct reading *r)
{
	for (unsigned t = 0; t < r->s->nlevels; t++) {
		r->s->level[t].is_cut = t + 1 < r->s->nlevels && level_of(r, t) == level_of(r, t + 1);
		if (is_told_by_table(r, t))
			r->table = t;
	}
}

static int digits_fill(struct reading *r, unsigned level, int low)
{
	struct slots *s = r->s;
	unsigned most = 1;

	for (unsigned i = 0; i < s->n; i++)
		if (digit_of(s, level, i) >= most)
			most = digit_of(s, level, i) + 1;
	for (unsigned i = 0; i < s->n && low + bits_for(most) <= CODE_BITS; i++)
		s->spot[i].code |= (uint64_t) digit_of(s, level, i) << low;
	return low + bits_for(most);
}

/*
 * Slots that share a place have one code. Bit 0 is always 0, so that slot_place_distance has a bit for equal codes. At
 * a level with a table, the rest of the code is the row.
 */
static int codes_fill(struct reading *r)
{
	struct slots *s = r->s;
	int low = 1;

	for (unsigned t = s->nlevels; t-- && low <= CODE_BITS;) {
		r->low[t] = low;
		if ((int) t <= r->table)
			continue;
		if (r->path_level[t] < r->paths.levels)
			low = digits_fill(r, t, low);
	}
	for (unsigned i = 0; r->table >= 0 && low <= CODE_BITS && i < s->n; i++)
		s->spot[i].code |= (uint64_t) s->level[r->table].of[i] << low;
	return low + (r->table >= 0 ? bits_for(s->level[r->table].n) : 0) <= CODE_BITS ? 0 : -1;
}

static int table_fill(struct reading *r)
{
	struct slots *s = r->s;
	const struct slot_level *t = &s->level[r->table];

	s->rows = t->n;
	if (!(s->table = malloc((size_t) t->n * t->n * sizeof(*s->table))))
		return -1;
	for (unsigned i = 0; i < s->n; i++)
		s->spot[i].row = t->of[i];
	for (unsigned a = 0; a < t->n; a++)
		for (unsigned b = 0; b < t->n; b++)
			s->table[(size_t) a * t->n + b] =
				places_distance(r->p, s->place[t->first[a]], s->place[t->first[b]]);
	return 0;
}

static double level_cost(const struct reading *r, const struct places_kind *kind, unsigned level)
{
	if ((int) level <= r->table)
		return -1;
	if (r->path_level[level] == r->paths.levels)
		return 0;
	return r->p->distance ? r->paths.cost[r->path_level[level]] : kind->cost[level_of(r, level)];
}

static void costs_fill(struct reading *r)
{
	struct slots *s = r->s;

	for (unsigned k = 0; k < r->p->nkinds; k++)
		for (unsigned t = 0; t < s->nlevels; t++)
			for (int bit = r->low[t]; bit < (t ? r->low[t - 1] : CODE_BITS); bit++)
				s->costs[k * CODE_BITS + bit] = level_cost(r, &r->p->kinds[k], t);
	for (unsigned i = 0; i < s->n; i++)
		s->spot[i].cost = &s->costs[place_of(r, i)->kind * CODE_BITS];
}

/* The distance between a domain's first slot and those of its neighbours; exact if all cost the same. */
static void typical_fill(struct slots *s)
{
	for (unsigned t = 0; t < s->nlevels; t++) {
		const struct slot_level *above = t ? &s->level[t - 1] : NULL, *own = &s->level[t];
		double sum = 0, pairs = 0;

		for (unsigned d = 1; d < own->n; d++)
			for (unsigned back = 1; back <= d && back <= 16; back++) {
				unsigned a = own->first[d], b = own->first[d - back];

				if (above && above->of[a] != above->of[b])
					break;
				sum += slots_distance(s, a, b);
				pairs++;
			}
		s->level[t].typical = pairs > 0 ? sum / pairs : 0;
	}
}

/* From the narrowest level up: a domain's shape is the sequence of the shapes in it. */
static void shapes_fill(struct reading *r)
{
	struct slots *s = r->s;

	for (unsigned t = s->nlevels; t-- && (int) t >= r->table;) {
		const struct slot_level *own = &s->level[t], *below = t + 1 < s->nlevels ? own + 1 : NULL;

		s->level[t].is_shaped = true;
		for (unsigned d = 0; d < own->n; d++) {
			uint64_t shape = t;

			if (!below)
				shape = place_of(r, own->first[d])->kind;
			else
				for (unsigned b = below->of[own->first[d]]; b <= below->of[own->first[d + 1] - 1]; b++)
					shape = draw_bits(&shape) ^ below->shape[b];
			own->shape[d] = draw_bits(&shape);
		}
	}
}

static int arrays_new(struct slots *s, const struct places *p)
{
	s->place = malloc(s->n * sizeof(*s->place));
	s->host = malloc(s->n * sizeof(*s->host));
	s->spot = calloc(s->n, sizeof(*s->spot));
	s->costs = calloc((size_t) p->nkinds * CODE_BITS, sizeof(*s->costs));
	return s->place && s->host && s->spot && s->costs ? 0 : -1;
}

/* Slots are equivalent if their domain is split only once more, at one cost. */
static const struct slot_level *cells_find(const struct reading *r)
{
	int last = (int) r->s->nlevels - 1;

	return &r->s->level[last > 0 && r->table < last ? last - 1 : last > 0 ? last : 0];
}

static int slots_read(struct reading *r, struct err *e)
{
	if (arrays_new(r->s, r->p) || paths_find(&r->paths, r->p))
		return err_set(e, "mapping: out of memory");
	slots_sort(r);
	if (levels_find(r))
		return err_set(e, "mapping: out of memory");
	levels_judge(r);
	if (codes_fill(r))
		return err_set(e, "mapping: the tree of places has too many levels, or too wide ones");
	if (r->table >= 0 && table_fill(r))
		return err_set(e, "mapping: out of memory");
	costs_fill(r);
	typical_fill(r->s);
	shapes_fill(r);
	r->s->cells = cells_find(r);
	return 0;
}

static int slots_fill(struct slots *s, const struct places *p, struct err *e)
{
	struct reading r = { .p = p, .s = s, .table = -1 };
	int rc = slots_read(&r, e);

	paths_free(&r.paths);
	return rc;
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
	for (unsigned t = 0; t < s->nlevels; t++) {
		free(s->level[t].first);
		free(s->level[t].of);
		free(s->level[t].shape);
	}
	free(s->place);
	free(s->host);
	free(s->spot);
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
