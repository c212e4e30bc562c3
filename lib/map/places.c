/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/places.h"

#include <stdlib.h>
#include <string.h>

#include "topo/restrict.h"

const unsigned places_default_cost[PLACES_LEVELS] = {
	[LEVEL_NODE] = 100,
	[LEVEL_PACKAGE] = 20,
	[LEVEL_DIE] = 14,
	[LEVEL_NUMA] = 12,
	[LEVEL_L3] = 8,
	[LEVEL_L2] = 4,
	[LEVEL_CORE] = 2,
};

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
	for (unsigned i = 0; i < p->nhosts; i++)
		free(p->hosts[i]);
	free(p->hosts);
	free(p->place);
	free(p);
}

/*
 * Domains are in preorder, so that of two around one core the inner has the higher index. A level that the core is in no
 * domain of, or in one that is wider than the level above (memory around packages), takes the domain above.
 */
static void path_fill(struct place *place, const struct shape *shape, size_t core_domain, unsigned base)
{
	memset(place->path, 0, sizeof(place->path));
	for (int d = core_domain; d >= 0; d = shape->domains[d].parent) {
		unsigned *at = &place->path[shape->domains[d].level];

		if (!*at)
			*at = base + d;
	}
	for (int l = 1; l < PLACES_LEVELS; l++)
		if (place->path[l] < place->path[l - 1])
			place->path[l] = place->path[l - 1];
}

static unsigned places_fill(struct place *to, const struct shape *shape, const unsigned char *wanted, unsigned host,
			    unsigned base)
{
	unsigned n = 0;

	for (size_t d = 0; d < shape->ndomains; d++) {
		const struct domain *core = &shape->domains[d];

		if (core->level != LEVEL_CORE || !wanted[core->first])
			continue;
		to[n] = (struct place){ .host = host, .leaf = n, .core = core->first, .threads = shape->threads[core->first] };
		path_fill(&to[n++], shape, d, base);
	}
	return n;
}

/* The numbers of domains go on from those of the node before, whose last place has its highest, and start at 1. */
static unsigned next_base(const struct places *p)
{
	return p->nplaces ? p->place[p->nplaces - 1].path[LEVEL_CORE] + 1 : 1;
}

static int room_make(struct places *p, unsigned cores)
{
	char **hosts = realloc(p->hosts, (p->nhosts + 1) * sizeof(*hosts));
	struct place *place;

	if (!hosts)
		return -1;
	p->hosts = hosts;
	if (!(place = realloc(p->place, ((size_t) p->nplaces + cores) * sizeof(*place))))
		return -1;
	p->place = place;
	return 0;
}

int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, struct err *e)
{
	unsigned char *wanted = calloc(shape->cores, 1);
	char *name = strdup(host);
	unsigned n;

	if (!wanted || !name || room_make(p, shape->cores)) {
		err_set(e, "%s: out of memory", host);
		goto error;
	}
	for (unsigned i = 0; i < p->nhosts; i++)
		if (!strcmp(p->hosts[i], host)) {
			err_set(e, "%s: the node is there twice", host);
			goto error;
		}
	if (cores_parse(cores, wanted, shape->cores, e)) {
		err_within(e, "%s", host);
		goto error;
	}
	if (!(n = places_fill(p->place + p->nplaces, shape, wanted, p->nhosts, next_base(p)))) {
		err_set(e, "%s: no core of the node is in the job", host);
		goto error;
	}
	p->hosts[p->nhosts++] = name;
	p->nplaces += n;
	free(wanted);
	return 0;
error:
	free(wanted);
	free(name);
	return -1;
}

/* The places of the host that begins at `from`, as places_fit has it; the first place of the next. */
static unsigned host_fit(const struct places *p, unsigned from, unsigned tasks, struct place *to, unsigned *n)
{
	unsigned end = from, kept = 0;

	while (end < p->nplaces && p->place[end].host == p->place[from].host)
		end++;
	for (unsigned i = from; i < end; i++) {
		unsigned times = tasks > end - from ? p->place[i].threads : 1;

		for (; times && kept < tasks; times--, kept++)
			to[(*n)++] = p->place[i];
	}
	return end;
}

int places_fit(struct places *p, const unsigned *tasks, struct err *e)
{
	struct place *fit;
	unsigned n = 0;
	size_t most = 0;

	for (unsigned i = 0; i < p->nplaces; i++)
		most += p->place[i].threads;
	if (!(fit = malloc((most + 1) * sizeof(*fit))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < p->nplaces;)
		i = host_fit(p, i, tasks[p->place[i].host], fit, &n);
	free(p->place);
	p->place = fit;
	p->nplaces = n;
	return 0;
}

unsigned places_distance(const struct places *p, unsigned a, unsigned b)
{
	const unsigned *from = p->place[a].path, *to = p->place[b].path;

	for (int l = 0; l < PLACES_LEVELS; l++)
		if (from[l] != to[l])
			return p->cost[l];
	return 0;
}
