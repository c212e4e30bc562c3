/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/places/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "map/matrix/numbers.h"
#include "map/places/places_room.h"

const unsigned places_default_cost[LEVEL_COUNT] = {
	[LEVEL_NODE] = 100,
	[LEVEL_PACKAGE] = 20,
	[LEVEL_DIE] = 14,
	[LEVEL_NUMA] = 12,
	[LEVEL_L3] = 8,
	[LEVEL_L2] = 4,
	[LEVEL_CORE] = 2,
};

#define MAX_COST 1000000

struct places *places_new(void)
{
	struct places *p = calloc(1, sizeof(*p));

	if (p)
		memcpy(p->cost, places_default_cost, sizeof(p->cost));
	return p;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->nhosts; i++) {
		free(p->hosts[i]);
		numbers_free(p->numbers ? p->numbers[i] : NULL);
	}
	free(p->hosts);
	free(p->numbers);
	free(p->place);
	free(p->leaf);
	free(p->core);
	free(p->kinds);
	free(p->distance);
	free(p);
}

static int cost_set(unsigned *cost, char *word, struct err *e)
{
	char *value = strchr(word, '='), *end;
	int level;
	unsigned long n;

	if (!value)
		return err_set(e, "costs: '%s': expected LEVEL=COST", word);
	*value++ = '\0';
	if ((level = level_parse(word)) < 0)
		return err_set(e, "costs: '%s': unknown level", word);
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || n > MAX_COST)
		return err_set(e, "costs: %s=%s: expected an integer up to %u", word, value, MAX_COST);
	cost[level] = n;
	return 0;
}

int places_costs(struct places *p, const char *words, struct err *e)
{
	char *copy = strdup(words), *save = NULL;
	unsigned cost[LEVEL_COUNT];
	int rc = copy ? 0 : err_set(e, "out of memory");

	memcpy(cost, p->cost, sizeof(cost));
	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word && rc == 0; word = strtok_r(NULL, ",", &save))
		rc = cost_set(cost, word, e);
	free(copy);
	if (rc == 0)
		memcpy(p->cost, cost, sizeof(cost));
	return rc;
}

int places_distances(struct places *p, const struct matrix *m, struct err *e)
{
	double *distance;

	if (m->ranks != p->added)
		return err_set(e, "the matrix of distances has %u places, but the job has %u", m->ranks, p->added);
	if (m->ranks > PLACES_MAX_DISTANCES)
		return err_set(e, "distances between %u places: at most %u are allowed", m->ranks,
			       PLACES_MAX_DISTANCES);
	if (!(distance = calloc((size_t) m->ranks * m->ranks, sizeof(*distance))))
		return err_set(e, "out of memory");
	for (unsigned a = 0; a < m->ranks; a++)
		for (size_t i = m->row[a]; i < m->row[a + 1]; i++)
			distance[(size_t) a * m->ranks + m->adj[i]] = m->weight[i] / 2;
	free(p->distance);
	p->distance = distance;
	return 0;
}

int places_host_new(struct places *p, const char *name, struct err *e)
{
	for (unsigned i = 0; i < p->nhosts; i++)
		if (!strcmp(p->hosts[i], name))
			return err_set(e, "%s: node given twice", name);
	if (array_reserve(p->hosts, p->nhosts, 1) || !(p->hosts[p->nhosts] = strdup(name)))
		return err_set(e, "%s: out of memory", name);
	p->nhosts++;
	return 0;
}

void places_host_drop(struct places *p, unsigned nplaces, unsigned nleaves)
{
	free(p->hosts[--p->nhosts]);
	p->nplaces = p->added = nplaces;
	p->nleaves = nleaves;
}

int places_room(struct places *p, unsigned nplaces, unsigned nleaves)
{
	return array_reserve(p->place, p->nplaces, nplaces) || array_reserve(p->leaf, p->nleaves, nleaves) ||
	       array_reserve(p->core, p->nleaves, nleaves) ? -1 : 0;
}

struct place *places_append(struct places *p, unsigned kind, unsigned takes)
{
	struct place *place = &p->place[p->nplaces];

	*place = (struct place){ .id = p->nplaces, .host = p->nhosts - 1, .leaf = p->nleaves,
				  .takes = takes, .kind = kind };
	p->added = ++p->nplaces;
	return place;
}

int places_kind_find(struct places *p, const struct places_kind *kind)
{
	for (unsigned i = 0; i < p->nkinds; i++)
		if (!memcmp(&p->kinds[i], kind, sizeof(*kind)))
			return i;
	if (array_reserve(p->kinds, p->nkinds, 1))
		return -1;
	p->kinds[p->nkinds] = *kind;
	return p->nkinds++;
}

unsigned places_above(const struct places *p, struct places_kind *kind)
{
	*kind = (struct places_kind){0};
	if (!p->network)
		return 0;
	for (unsigned l = 0; l < p->network->nlevels; l++)
		kind->cost[l] = p->network->level[l].cost[0];
	return p->network->nlevels;
}

/*
 * Scotch's numbering of a torus, also used by the fabric: the first dimension varies fastest. Distances are the shorter
 * way round.
 */
static double torus_distance(const struct hierarchy_level *l, unsigned a, unsigned b)
{
	double sum = 0;

	for (unsigned d = 0; d < l->dims; d++) {
		unsigned x = a % l->dim[d], y = b % l->dim[d], hops = x > y ? x - y : y - x;

		sum += (double) l->cost[d] * (hops > l->dim[d] - hops ? l->dim[d] - hops : hops);
		a /= l->dim[d];
		b /= l->dim[d];
	}
	return sum;
}

static double level_distance(const struct places *p, const struct place *a, const struct place *b, unsigned l)
{
	const struct hierarchy_level *level = p->network && l < p->network->nlevels ? &p->network->level[l] : NULL;

	if (level && level->form == HIERARCHY_TORUS)
		return torus_distance(level, a->path[l], b->path[l]);
	if (level && level->form == HIERARCHY_GRAPH)
		return (double) level->cost[0] * level->hops[(size_t) a->path[l] * level->size + b->path[l]];
	return p->kinds[a->kind].cost[l];
}

double places_distance(const struct places *p, unsigned a, unsigned b)
{
	const struct place *from = &p->place[a], *to = &p->place[b];

	if (p->distance)
		return p->distance[(size_t) from->id * p->added + to->id];
	for (unsigned l = 0; l < PLACES_LEVELS; l++)
		if (from->path[l] != to->path[l])
			return level_distance(p, from, to, l);
	return 0;
}
