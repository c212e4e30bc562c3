/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/places/places.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "map/matrix/numbers.h"
#include "map/places/places_room.h"

#define MAX_COST 1000000

struct places *places_new(void)
{
	struct places *p = calloc(1, sizeof(*p));

	if (p)
		memcpy(p->cost, level_default_cost, sizeof(p->cost));
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
	numa_tree_free(&p->numas);
	free(p);
}

/* Costs as they are read: those that were not named are the former ones, or NAN. */
struct cost_words {
	double level[LEVEL_COUNT];
	double pair[NUMA_TREE_MAX * NUMA_TREE_MAX];
	unsigned numas;
};

static bool is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789"), all = strspn(text, "0123456789.");

	return digits && !text[all] && all <= digits + 1 + strspn(text + digits + (text[digits] == '.'), "0123456789");
}

/* "A-B", two NUMA nodes: 0, 1 when it is none, -1. */
static int pair_set(struct cost_words *c, const char *word, double cost, struct err *e)
{
	unsigned a, b;
	int used = 0;

	if (sscanf(word, "%2u-%2u%n", &a, &b, &used) != 2 || word[used])
		return 1;
	if (a >= NUMA_TREE_MAX || b >= NUMA_TREE_MAX || a == b)
		return err_set(e, "costs: '%s': expected two NUMA nodes, 0 to %u", word, NUMA_TREE_MAX - 1);
	c->pair[a * NUMA_TREE_MAX + b] = c->pair[b * NUMA_TREE_MAX + a] = cost;
	c->numas = fmax(c->numas, fmax(a, b) + 1);
	return 0;
}

static int cost_set(struct cost_words *c, char *word, struct err *e)
{
	char *value = strchr(word, '=');
	int level, rc;

	if (!value)
		return err_set(e, "costs: '%s': expected LEVEL=COST", word);
	*value++ = '\0';
	if (!is_number(value) || strtod(value, NULL) > MAX_COST)
		return err_set(e, "costs: %s=%s: expected a number up to %u", word, value, MAX_COST);
	if ((rc = pair_set(c, word, strtod(value, NULL), e)) <= 0)
		return rc;
	if ((level = level_parse(word)) < 0)
		return err_set(e, "costs: '%s': unknown level, expected " LEVEL_NAMES, word);
	c->level[level] = strtod(value, NULL);
	return 0;
}

/* Of all pairs, in rows without gaps. */
static int pairs_close(struct cost_words *c, struct err *e)
{
	for (unsigned a = 0; a < c->numas; a++)
		for (unsigned b = 0; b < c->numas; b++) {
			double cost = a == b ? 0 : c->pair[a * NUMA_TREE_MAX + b];

			if (isnan(cost))
				return err_set(e, "costs: between the NUMA nodes %u and %u: missing", a, b);
			c->pair[a * c->numas + b] = cost;
		}
	return 0;
}

int places_costs(struct places *p, const char *words, struct err *e)
{
	char *copy = strdup(words), *save = NULL;
	struct cost_words *c = calloc(1, sizeof(*c));
	struct numa_tree numas = {0};
	int rc = copy && c ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < NUMA_TREE_MAX * NUMA_TREE_MAX; i++)
		c->pair[i] = NAN;
	if (rc == 0)
		memcpy(c->level, p->cost, sizeof(c->level));
	for (char *word = rc ? NULL : strtok_r(copy, ",", &save); word && rc == 0; word = strtok_r(NULL, ",", &save))
		rc = cost_set(c, word, e);
	if (rc == 0 && (rc = pairs_close(c, e)) == 0)
		rc = numa_tree_make(c->pair, c->numas, &numas, e);
	if (rc == 0) {
		memcpy(p->cost, c->level, sizeof(c->level));
		numa_tree_free(&p->numas);
		p->numas = numas;
	}
	free(copy);
	free(c);
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

/* In a tree the cost is the same for all of a kind, whose levels go on within the node. */
static double level_distance(const struct places *p, const struct place *a, const struct place *b, unsigned l)
{
	const struct hierarchy_level *level = p->network && l < p->network->nlevels ? &p->network->level[l] : NULL;

	return level && level->form != HIERARCHY_TREE ? hierarchy_level_cost(level, a->path[l], b->path[l])
						      : p->kinds[a->kind].cost[l];
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
