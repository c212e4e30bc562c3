/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/places/places.h"

int places_fill_parse(const char *name)
{
	static const char *const names[] = {
		[FILL_AUTO] = "auto", [FILL_COMPACT] = "compact", [FILL_SPREAD] = "spread",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* The number of places of each host, followed by as many zeros. */
static unsigned *rooms_new(const struct places *p)
{
	unsigned *room = calloc(2 * (size_t) p->nhosts + 1, sizeof(*room));

	for (unsigned i = 0; room && i < p->nplaces; i++)
		room[p->place[i].host]++;
	return room;
}

unsigned *places_share(const struct places *p, unsigned ranks)
{
	unsigned *room = rooms_new(p), *share = room ? room + p->nhosts : NULL;

	while (room && ranks)
		for (unsigned h = 0; h < p->nhosts && ranks; h++)
			if (share[h] < room[h]) {
				share[h]++;
				ranks--;
			}
	if (room)
		memcpy(room, share, p->nhosts * sizeof(*room));
	return room;
}

/* The fewest hosts: repeatedly the one with most places, of equal ones the first. */
static unsigned *compact_new(const struct places *p, unsigned ranks)
{
	unsigned *room = rooms_new(p), *tasks = room ? room + p->nhosts : NULL;

	while (room && ranks) {
		unsigned best = 0;

		for (unsigned h = 1; h < p->nhosts; h++)
			if (room[h] > room[best])
				best = h;
		tasks[best] = room[best] < ranks ? room[best] : ranks;
		ranks -= tasks[best];
		room[best] = 0;
	}
	if (room)
		memcpy(room, tasks, p->nhosts * sizeof(*room));
	return room;
}

/* Fits the places of a host that begins at `from` (places_fit). Returns the first of the next host. */
static unsigned host_fit(const struct places *p, unsigned from, unsigned tasks, enum places_fill fill, struct place *to,
			 unsigned *n)
{
	unsigned end = from, room;

	while (end < p->nplaces && p->place[end].host == p->place[from].host)
		end++;
	room = end - from;
	if (tasks <= room && fill == FILL_SPREAD) {
		for (unsigned long long i = 0; i < tasks; i++)
			to[(*n)++] = p->place[from + i * room / tasks];
		return end;
	}
	for (unsigned i = from, kept = 0; i < end; i++) {
		unsigned times = tasks > room ? p->place[i].takes : 1;

		for (; times && kept < tasks; times--, kept++)
			to[(*n)++] = p->place[i];
	}
	return end;
}

int places_fit(struct places *p, const unsigned *tasks, enum places_fill fill, struct err *e)
{
	struct place *fit;
	unsigned n = 0;
	size_t most = 0;

	for (unsigned i = 0; i < p->nplaces; i++)
		most += p->place[i].takes;
	if (!(fit = malloc((most + 1) * sizeof(*fit))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < p->nplaces;)
		i = host_fit(p, i, tasks[p->place[i].host], fill, fit, &n);
	free(p->place);
	p->place = fit;
	p->nplaces = n;
	return 0;
}

int places_fill(struct places *p, unsigned ranks, enum places_fill fill, struct err *e)
{
	unsigned *tasks;
	int rc;

	if (fill == FILL_AUTO || ranks >= p->nplaces)
		return 0;
	tasks = fill == FILL_COMPACT ? compact_new(p, ranks) : places_share(p, ranks);
	rc = tasks ? places_fit(p, tasks, fill, e) : err_set(e, "out of memory");
	free(tasks);
	return rc;
}
