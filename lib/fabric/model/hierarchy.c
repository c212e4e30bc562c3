/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/hierarchy.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct hierarchy *hierarchy_new(void)
{
	return calloc(1, sizeof(struct hierarchy));
}

void hierarchy_free(struct hierarchy *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < h->nhosts; i++) {
		free(h->hosts[i].name);
		free(h->hosts[i].inner.leaf);
	}
	for (unsigned i = 0; i < h->ngroups; i++)
		free(h->groups[i].name);
	for (unsigned l = 0; l < HIERARCHY_LEVELS; l++)
		free(h->level[l].hops);
	free(h->hosts);
	free(h->groups);
	free(h);
}

int hierarchy_add_group(struct hierarchy *h, const char *name, unsigned level, unsigned above, unsigned at)
{
	char *copy;

	if (array_reserve(h->groups, h->ngroups, 1) || !(copy = strdup(name)))
		return -1;
	h->groups[h->ngroups] = (struct hierarchy_group){ copy, level, above, at };
	return h->ngroups++;
}

struct hierarchy_host *hierarchy_add_host(struct hierarchy *h, const char *name, unsigned group, const unsigned *at)
{
	struct hierarchy_host *host;
	char *copy;

	if (array_reserve(h->hosts, h->nhosts, 1) || !(copy = strdup(name)))
		return NULL;
	host = &h->hosts[h->nhosts++];
	*host = (struct hierarchy_host){ .name = copy, .group = group };
	memcpy(host->at, at, sizeof(host->at));
	return host;
}

static int hosts_compare(const void *a, const void *b)
{
	const struct hierarchy_host *x = a, *y = b;

	for (unsigned l = 0; l < HIERARCHY_LEVELS; l++)
		if (x->at[l] != y->at[l])
			return x->at[l] < y->at[l] ? -1 : 1;
	return strcmp(x->name, y->name);
}

void hierarchy_sort(struct hierarchy *h)
{
	if (h->nhosts)
		qsort(h->hosts, h->nhosts, sizeof(*h->hosts), hosts_compare);
}

const struct hierarchy_host *hierarchy_find(const struct hierarchy *h, const char *name)
{
	for (unsigned i = 0; i < h->nhosts; i++)
		if (!strcmp(h->hosts[i].name, name))
			return &h->hosts[i];
	return NULL;
}

static double torus_cost(const struct hierarchy_level *level, unsigned a, unsigned b)
{
	double sum = 0;

	for (unsigned d = 0; d < level->dims; d++) {
		unsigned x = a % level->dim[d], y = b % level->dim[d], hops = x < y ? y - x : x - y;

		if (hops > level->dim[d] - hops)
			hops = level->dim[d] - hops;
		sum += (double) hops * level->cost[d];
		a /= level->dim[d];
		b /= level->dim[d];
	}
	return sum;
}

double hierarchy_level_cost(const struct hierarchy_level *level, unsigned a, unsigned b)
{
	switch (level->form) {
	case HIERARCHY_TORUS:
		return torus_cost(level, a, b);
	case HIERARCHY_GRAPH:
		return (double) level->hops[(size_t) a * level->size + b] * level->cost[0];
	case HIERARCHY_TREE:
		break;
	}
	return level->cost[0];
}

unsigned hierarchy_distance(const struct hierarchy *h, const struct hierarchy_host *a, const struct hierarchy_host *b)
{
	for (unsigned l = 0; l < h->nlevels; l++)
		if (a->at[l] != b->at[l])
			return hierarchy_level_cost(&h->level[l], a->at[l], b->at[l]);
	return 0;
}
