/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/slots.h"

#include <math.h>

#include "map/matrix/draw.h"

static int by_key(const void *a, const void *b, void *of)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;
	const double *key = of;

	return COMPARE(key[x], key[y]) ?: COMPARE(x, y);
}

void engine_order(const double *key, unsigned n, unsigned *order)
{
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_key, (void *) key);
}

/*
 * The tree that the search follows: for each place a number for each level, from the top down. It is the tree of the
 * places, except where their distances have a structure that this lacks. A torus is halved repeatedly across its
 * longest side, before the level that separates its routers. Where a matrix of distances replaces the costs, its
 * clusters are the tree (single linkage: a level for each distance at which some join).
 */
struct paths {
	unsigned levels;
	unsigned level[PATHS_LEVELS];	/* by level: the level of the places that it is, or is part of */
	bool is_tree;			/* distances depend on the level at which a pair parts alone; by level: */
	double cost[PATHS_LEVELS];
	unsigned *number;		/* number[place * levels + level] */
};

/* The first level at which two places differ; levels: none. */
static unsigned paths_parted(const struct paths *t, unsigned a, unsigned b)
{
	const unsigned *x = &t->number[(size_t) a * t->levels], *y = &t->number[(size_t) b * t->levels];
	unsigned l = 0;

	while (l < t->levels && x[l] == y[l])
		l++;
	return l;
}

/* The dimension of the largest cost from end to end among those that can be halved; or dims. */
static unsigned longest_side(const struct hierarchy_level *l, const unsigned *from, const unsigned *to)
{
	unsigned best = l->dims;
	double most = 0;

	for (unsigned d = 0; d < l->dims; d++) {
		double length = to[d] - from[d] > 1 ? (to[d] - from[d]) * (l->cost[d] + 1.0) : 0;

		if (length > most) {
			most = length;
			best = d;
		}
	}
	return best;
}

/* Only the first torus is halved: one below another would have hardly any locality left. */
static int paths_of_places(struct paths *t, const struct places *p)
{
	const struct hierarchy_level *torus = NULL;
	unsigned cut = 0;

	for (unsigned l = 0; l < PLACES_LEVELS; l++) {
		if (!torus && p->network && l < p->network->nlevels && p->network->level[l].form == HIERARCHY_TORUS) {
			torus = &p->network->level[l];
			cut = t->levels;
			for (unsigned i = 0; i < PATHS_CUTS; i++)
				t->level[t->levels++] = l;
		}
		t->level[t->levels++] = l;
	}
	if (!(t->number = calloc((size_t) p->nplaces * t->levels + 1, sizeof(*t->number))))
		return -1;
	for (unsigned i = 0; i < p->nplaces; i++) {
		unsigned *number = &t->number[(size_t) i * t->levels];

		for (unsigned l = 0; l < t->levels; l++)
			number[l] = p->place[i].path[t->level[l]];
		if (torus) {
			memset(&number[cut], 0, PATHS_CUTS * sizeof(*number));
			/* The half that a router is in, the half of that, and so on. */
			unsigned router = p->place[i].path[t->level[cut]];
			unsigned at[HIERARCHY_DIMS], from[HIERARCHY_DIMS] = {0}, to[HIERARCHY_DIMS];

			for (unsigned d = 0; d < torus->dims; router /= torus->dim[d++]) {
				at[d] = router % torus->dim[d];
				to[d] = torus->dim[d];
			}
			for (unsigned j = 0; j < PATHS_CUTS; j++) {
				unsigned d = longest_side(torus, from, to), middle;

				if (d == torus->dims)
					break;
				middle = (from[d] + to[d]) / 2;
				number[cut + j] = at[d] >= middle;
				*(number[cut + j] ? &from[d] : &to[d]) = middle;
			}
		}
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	return COMPARE(*(const double *) b, *(const double *) a);
}

/*
 * Grows a set of places, always by the one nearest to any in it, and records that distance (Prim, 1957): the distances
 * at which places join, the largest first, are the levels; a selection if there are more. Places at distance 0 are one.
 */
static int paths_of_distances(struct paths *t, const struct places *p)
{
	unsigned n = p->nplaces, found = 0, domain[PATHS_CUTS] = {0}, *order = malloc(n * sizeof(*order));
	double *join = malloc(2 * (size_t) n * sizeof(*join)), *sorted = join + n;
	int rc = -1;

	if (!order || !join)
		goto out;
	for (unsigned i = 0; i < n; i++) {
		order[i] = i;
		join[i] = INFINITY;
	}
	for (unsigned done = 1; done < n; done++) {
		unsigned next = done, taken = order[done - 1];
		double nearest;

		for (unsigned i = done; i < n; i++) {
			double distance = places_distance(p, taken, order[i]);

			if (distance < join[i])
				join[i] = distance;
			if (join[i] < join[next] || (join[i] == join[next] && order[i] < order[next]))
				next = i;
		}
		nearest = join[next];
		taken = order[next];
		join[next] = join[done];
		order[next] = order[done];
		join[done] = nearest;
		order[done] = taken;
	}
	memcpy(sorted, join, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	for (unsigned i = 1; i < n; i++)
		if (sorted[i] > 0 && (!found || sorted[i] < sorted[found - 1]))
			sorted[found++] = sorted[i];
	t->levels = found < PATHS_CUTS ? found : PATHS_CUTS;
	if (!(t->number = calloc((size_t) n * t->levels + 1, sizeof(*t->number))))
		goto out;
	for (unsigned l = 0; l < t->levels; l++) {
		t->level[l] = l;
		t->cost[l] = sorted[(l + 1) * (size_t) found / t->levels - 1];
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned l = 0; l < t->levels; l++) {
			domain[l] += i && join[i] >= t->cost[l];
			t->number[(size_t) order[i] * t->levels + l] = domain[l];
		}
	t->is_tree = true;
	for (unsigned a = 0; a < n && t->is_tree; a++)
		for (unsigned b = 0; b < a && t->is_tree; b++) {
			unsigned l = paths_parted(t, a, b);

			t->is_tree = places_distance(p, a, b) == (l < t->levels ? t->cost[l] : 0);
		}
	rc = 0;
out:
	free(order);
	free(join);
	return rc;
}

#define CODE_BITS 64

struct reading {
	const struct places *p;
	struct slots *s;
	struct paths paths;
	unsigned path_level[PATHS_LEVELS + 1];	/* by level of slots; slots that share a place: beyond the last */
	int low[PATHS_LEVELS + 1];	/* the lowest bit of each level */
	int table;			/* the lowest level where costs depend on the pair, too; -1: none */
};

static int path_order(const void *x, const void *y, void *paths)
{
	const struct paths *t = paths;
	unsigned a = *(const unsigned *) x, b = *(const unsigned *) y, l = paths_parted(t, a, b);

	return l == t->levels ? COMPARE(a, b) :
	       COMPARE(t->number[(size_t) a * t->levels + l], t->number[(size_t) b * t->levels + l]);
}

/* Level by level, the domains into which the sorted slots part. */
static int levels_fill(struct reading *r)
{
	struct slots *s = r->s;
	unsigned domains = 1, found[PATHS_LEVELS + 1] = {0};
	unsigned char *parted = calloc(s->n, 1);
	int rc = parted ? 0 : -1;

	for (unsigned i = 1; rc == 0 && i < s->n; i++)
		found[parted[i] = paths_parted(&r->paths, s->place[i - 1], s->place[i])]++;
	for (unsigned l = 0; rc == 0 && l <= r->paths.levels; l++) {
		struct slot_level *t = &s->level[s->nlevels];

		if (!found[l])
			continue;
		domains += found[l];
		r->path_level[s->nlevels++] = l;
		t->first = malloc((domains + 1) * sizeof(*t->first));
		t->of = malloc(s->n * sizeof(*t->of));
		t->shape = calloc(domains, sizeof(*t->shape));
		if (!t->first || !t->of || !t->shape) {
			rc = -1;
			break;
		}
		for (unsigned i = 0; i < s->n; i++) {
			if (!i || parted[i] <= l)
				t->first[t->n++] = i;
			t->of[i] = t->n - 1;
		}
		t->first[t->n] = s->n;
	}
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

/*
 * Slots that share a place have one code. Bit 0 is always 0, so that slot_place_distance has a bit for equal codes. At
 * a level with a table, the rest of the code is the row.
 */
static int codes_fill(struct reading *r)
{
	struct slots *s = r->s;
	int low = 1;

	for (unsigned t = s->nlevels; t-- && low <= CODE_BITS;) {
		unsigned most = 1;

		r->low[t] = low;
		if ((int) t <= r->table || r->path_level[t] == r->paths.levels)
			continue;
		for (unsigned i = 0; i < s->n; i++)
			if (digit_of(s, t, i) >= most)
				most = digit_of(s, t, i) + 1;
		for (unsigned i = 0; i < s->n && low + bits_for(most) <= CODE_BITS; i++)
			s->spot[i].code |= (uint64_t) digit_of(s, t, i) << low;
		low += bits_for(most);
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

static void costs_fill(struct reading *r)
{
	struct slots *s = r->s;

	for (unsigned k = 0; k < r->p->nkinds; k++)
		for (unsigned t = 0; t < s->nlevels; t++) {
			double cost = (int) t <= r->table ? -1 : r->path_level[t] == r->paths.levels ? 0 :
				r->p->distance ? r->paths.cost[r->path_level[t]] : r->p->kinds[k].cost[level_of(r, t)];

			for (int bit = r->low[t]; bit < (t ? r->low[t - 1] : CODE_BITS); bit++)
				s->costs[k * CODE_BITS + bit] = cost;
		}
	for (unsigned i = 0; i < s->n; i++)
		s->spot[i].cost = &s->costs[r->p->place[s->place[i]].kind * CODE_BITS];
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
				shape = r->p->place[r->s->place[own->first[d]]].kind;
			else
				for (unsigned b = below->of[own->first[d]]; b <= below->of[own->first[d + 1] - 1]; b++)
					shape = draw_bits(&shape) ^ below->shape[b];
			own->shape[d] = draw_bits(&shape);
		}
	}
}

struct slots *slots_new(const struct places *p, struct err *e)
{
	struct reading r = { .p = p, .s = calloc(1, sizeof(*r.s)), .table = -1 };
	struct slots *s = r.s;
	int last;

	if (!s)
		goto no_memory;
	s->n = p->nplaces;
	s->hosts = p->nhosts;
	s->place = malloc(s->n * sizeof(*s->place));
	s->host = malloc(s->n * sizeof(*s->host));
	s->spot = calloc(s->n, sizeof(*s->spot));
	s->costs = calloc((size_t) p->nkinds * CODE_BITS, sizeof(*s->costs));
	if (!s->place || !s->host || !s->spot || !s->costs ||
	    (p->distance ? paths_of_distances : paths_of_places)(&r.paths, p))
		goto no_memory;
	for (unsigned i = 0; i < s->n; i++)
		s->place[i] = s->spot[i].slot = i;
	qsort_r(s->place, s->n, sizeof(*s->place), path_order, &r.paths);
	for (unsigned i = 0; i < s->n; i++)
		s->host[i] = p->place[s->place[i]].host;
	if (levels_fill(&r))
		goto no_memory;
	last = (int) s->nlevels - 1;
	for (int t = 0; t <= last; t++) {
		unsigned l = level_of(&r, t);

		s->level[t].is_cut = t < last && l == level_of(&r, t + 1);
		if (p->distance ? !r.paths.is_tree : p->network && l < p->network->nlevels &&
		    p->network->level[l].form != HIERARCHY_TREE)
			r.table = t;
	}
	if (codes_fill(&r)) {
		err_set(e, "mapping: the tree of places has too many levels, or too wide ones");
		goto failed;
	}
	if (r.table >= 0 && table_fill(&r))
		goto no_memory;
	costs_fill(&r);
	typical_fill(s);
	shapes_fill(&r);
	/* Slots are equivalent if their domain is split only once more, at one cost. */
	s->cells = &s->level[last > 0 && r.table < last ? last - 1 : last > 0 ? last : 0];
	free(r.paths.number);
	return s;
no_memory:
	err_set(e, "mapping: out of memory");
failed:
	free(r.paths.number);
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
