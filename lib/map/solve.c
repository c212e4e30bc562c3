/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/solve.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "map/repair.h"
#include "map/scotch.h"
#include "map/swaps.h"

struct problem {
	const struct matrix *m;
	const struct places *p;
	unsigned seed;
	struct err *err;
};

double mapping_cost(const struct matrix *m, const struct places *p, const unsigned *place)
{
	double cost = 0;

	for (unsigned r = 0; r < m->ranks; r++)
		cost += swaps_rank_cost(m, p, place, r, place[r]);
	return cost / 2;
}

/* The places of each node, and how many of them Slurm would use. */
struct share {
	unsigned first, room, ranks;
};

static struct share *shares_new(const struct problem *b)
{
	struct share *share = calloc(b->p->nhosts, sizeof(*share));
	unsigned left = b->m->ranks;

	if (!share)
		return NULL;
	for (unsigned i = b->p->nplaces; i--;) {
		share[b->p->place[i].host].first = i;
		share[b->p->place[i].host].room++;
	}
	while (left)
		for (unsigned h = 0; h < b->p->nhosts && left; h++)
			if (share[h].ranks < share[h].room) {
				share[h].ranks++;
				left--;
			}
	return share;
}

static int no_memory(const struct problem *b)
{
	return err_set(b->err, "mapping: out of memory");
}

static int map_block(const struct problem *b, unsigned *place)
{
	struct share *share = shares_new(b);
	unsigned rank = 0;

	if (!share)
		return no_memory(b);
	for (unsigned h = 0; h < b->p->nhosts; h++)
		for (unsigned i = 0; i < share[h].ranks; i++)
			place[rank++] = share[h].first + i;
	free(share);
	return 0;
}

static int map_cyclic(const struct problem *b, unsigned *place)
{
	struct share *share = shares_new(b);
	unsigned rank = 0;

	if (!share)
		return no_memory(b);
	for (unsigned turn = 0; rank < b->m->ranks; turn++)
		for (unsigned h = 0; h < b->p->nhosts; h++)
			if (turn < share[h].ranks)
				place[rank++] = share[h].first + turn;
	free(share);
	return 0;
}

static int map_scotch(const struct problem *b, unsigned nplaces, enum scotch_method method, unsigned *place)
{
	if (scotch_map(b->m, b->p, nplaces, method, b->seed, place, b->err))
		return -1;
	return repair_mapping(b->m, b->p, place) ? no_memory(b) : 0;
}

static int map_default(const struct problem *b, unsigned *place)
{
	return map_scotch(b, b->p->nplaces, SCOTCH_MAP_DEFAULT, place);
}

static int map_quality(const struct problem *b, unsigned *place)
{
	return map_scotch(b, b->p->nplaces, SCOTCH_MAP_QUALITY, place);
}

static int map_recursive(const struct problem *b, unsigned *place)
{
	return map_scotch(b, b->p->nplaces, SCOTCH_MAP_RECURSIVE, place);
}

/* Scotch spreads few ranks over many places. As many places as ranks make them stay together. */
static int map_compact(const struct problem *b, unsigned *place)
{
	return map_scotch(b, b->m->ranks, SCOTCH_MAP_QUALITY, place);
}

/* In the order of preference among mappings of one cost; what needed no polish comes before all that did. */
static const struct candidate {
	const char *name, *polished;
	int (*map)(const struct problem *b, unsigned *place);
} candidates[] = {
	{ "block", "block+swaps", map_block },
	{ "cyclic", "cyclic+swaps", map_cyclic },
	{ "scotch", "scotch+swaps", map_default },
	{ "scotch-quality", "scotch-quality+swaps", map_quality },
	{ "scotch-recursive", "scotch-recursive+swaps", map_recursive },
	{ "scotch-compact", "scotch-compact+swaps", map_compact },
};

enum { BLOCK, CYCLIC, SCOTCH, CANDIDATES = sizeof(candidates) / sizeof(candidates[0]) };

static double keep_best(const struct problem *b, const unsigned *place, const char *method, struct mapping *best)
{
	double cost = mapping_cost(b->m, b->p, place);

	if (!best->method || cost < best->cost) {
		memcpy(best->place, place, b->m->ranks * sizeof(*place));
		best->cost = cost;
		best->method = method;
	}
	return cost;
}

/* place has room for a mapping of each candidate. */
static int try_all(const struct problem *b, unsigned *place, struct mapping *best)
{
	double cost[CANDIDATES];

	for (size_t c = 0; c < CANDIDATES; c++) {
		unsigned *mine = place + c * b->m->ranks;

		if (candidates[c].map(b, mine))
			return -1;
		cost[c] = keep_best(b, mine, candidates[c].name, best);
	}
	for (size_t c = 0; c < CANDIDATES; c++) {
		unsigned *mine = place + c * b->m->ranks;

		if (swaps_polish(b->m, b->p, mine))
			return no_memory(b);
		keep_best(b, mine, candidates[c].polished, best);
	}
	best->block = cost[BLOCK];
	best->cyclic = cost[CYCLIC];
	best->scotch = cost[SCOTCH];
	return 0;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int mapping_solve(const struct matrix *m, const struct places *p, unsigned seed, struct mapping *out, struct err *e)
{
	struct problem b = { .m = m, .p = p, .seed = seed, .err = e };
	struct mapping best = { .ranks = m->ranks };
	double start = seconds_now();
	unsigned *place;
	int rc = -1;

	if (p->nplaces < m->ranks)
		return err_set(e, "mapping: %u ranks, but the job has only %u cores", m->ranks, p->nplaces);
	place = malloc((size_t) CANDIDATES * m->ranks * sizeof(*place));
	best.place = malloc(m->ranks * sizeof(*best.place));
	if (!place || !best.place)
		no_memory(&b);
	else
		rc = try_all(&b, place, &best);
	free(place);
	if (rc) {
		free(best.place);
		return -1;
	}
	best.seconds = seconds_now() - start;
	*out = best;
	return 0;
}

void mapping_free(struct mapping *m)
{
	free(m->place);
	*m = (struct mapping){0};
}
