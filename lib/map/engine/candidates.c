/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>

#include "map/engine/candidates.h"
#include "map/engine/repair.h"
#include "map/engine/scotch.h"
#include "map/engine/split.h"
#include "map/engine/tuning.h"

static int no_memory(const struct map_problem *b)
{
	return err_set(b->err, "mapping: out of memory");
}

/* The slot of each place, followed by the first place of each host. */
static unsigned *index_new(const struct map_problem *b)
{
	unsigned *slot_of = malloc(((size_t) b->p->nplaces + b->p->nhosts + 1) * sizeof(*slot_of));

	if (!slot_of)
		return NULL;
	for (unsigned i = 0; i < b->s->n; i++)
		slot_of[b->s->place[i]] = i;
	for (unsigned i = b->p->nplaces; i--;)
		slot_of[b->p->nplaces + b->p->place[i].host] = i;
	return slot_of;
}

struct hand {
	unsigned hosts, ranks;
	const unsigned *share, *first;	/* by host: its number of ranks, its first place */
	unsigned *place;		/* by rank */
};

static void deal_block(const struct hand *d)
{
	unsigned rank = 0;

	for (unsigned h = 0; h < d->hosts; h++)
		for (unsigned i = 0; i < d->share[h]; i++)
			d->place[rank++] = d->first[h] + i;
}

static void deal_cyclic(const struct hand *d)
{
	unsigned rank = 0;

	for (unsigned turn = 0; rank < d->ranks; turn++)
		for (unsigned h = 0; h < d->hosts; h++)
			if (turn < d->share[h])
				d->place[rank++] = d->first[h] + turn;
}

static int map_dealt(const struct map_problem *b, unsigned *slot, void (*deal)(const struct hand *d))
{
	unsigned *share = places_share(b->p, b->m->ranks), *slot_of = index_new(b);
	int rc = share && slot_of ? 0 : no_memory(b);

	if (rc == 0) {
		deal(&(struct hand){ b->p->nhosts, b->m->ranks, share, slot_of + b->p->nplaces, slot });
		for (unsigned r = 0; r < b->m->ranks; r++)
			slot[r] = slot_of[slot[r]];
	}
	free(share);
	free(slot_of);
	return rc;
}

static int map_block(const struct map_problem *b, unsigned *slot)
{
	return map_dealt(b, slot, deal_block);
}

static int map_cyclic(const struct map_problem *b, unsigned *slot)
{
	return map_dealt(b, slot, deal_cyclic);
}

static int map_scotch(const struct map_problem *b, unsigned *slot)
{
	if (scotch_map(b->m, b->s, b->seed, slot, b->err))
		return -1;
	return repair_mapping(b->m, b->s, slot) ? no_memory(b) : 0;
}

/* Randomness of the bisections in starts that are to differ. */

int candidate_map(const struct candidate *c, const struct map_problem *b, unsigned *slot)
{
	struct split_way way = c->way;

	way.loose = b->loose ? LOOSE : 0;
	return c->map ? c->map(b, slot) : split_map(b->m, b->s, way, b->seed, slot, b->err);
}

/* The work for a rank, in edge evaluations. */

enum need { MAY_TAKE_LONG = 1, HAS_ROOM = 2, HAS_CUTS = 4 };

static bool has_cuts(const struct slots *s)
{
	for (unsigned t = 0; t < s->nlevels; t++)
		if (s->level[t].is_cut)
			return true;
	return false;
}

bool candidate_is_worth(const struct candidate *c, const struct map_problem *b)
{
	unsigned has = (b->quick ? 0 : MAY_TAKE_LONG) | (b->m->ranks < b->s->n ? HAS_ROOM : 0) |
		(has_cuts(b->s) ? HAS_CUTS : 0);

	return !(c->needs & ~has);
}

unsigned long long candidate_work(const struct candidate *c, const struct map_problem *b)
{
	unsigned levels = 1;

	while (b->s->n >> levels)
		levels++;
	return (b->m->row[b->m->ranks] + WORK_RANK * (unsigned long long) b->m->ranks) * levels * c->takes;
}

/*
 * In a tree, everything outside a domain is equally far from all of its parts: halves are the same with and without the
 * external bias.
 */
const struct candidate candidates[] = {
	[CANDIDATE_BLOCK] = { .name = "block", .map = map_block },
	[CANDIDATE_CYCLIC] = { .name = "cyclic", .map = map_cyclic },
	[CANDIDATE_SCOTCH] = { .name = "scotch", .map = map_scotch, .needs = MAY_TAKE_LONG, .takes = 45 },
	{ "split", NULL, 0, 16, { .by = SPLIT_BY_SCOTCH } },
	{ "split-halved", NULL, HAS_CUTS, 22, { .by = SPLIT_BY_SCOTCH, .halved = true } },
	{ "split-packed", NULL, HAS_ROOM, 16, { .by = SPLIT_BY_SCOTCH, .halved = true, .sizes = SPLIT_PACKED } },
	{ "bisection", NULL, MAY_TAKE_LONG, 70, { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_FREE } },
	{ "bisection-packed", NULL, MAY_TAKE_LONG | HAS_ROOM, 70,
	  { .by = SPLIT_BY_BISECTION, .halved = true, .sizes = SPLIT_PACKED } },
	{ "bisection-unbiased", NULL, MAY_TAKE_LONG | HAS_CUTS, 70,
	  { .by = SPLIT_BY_BISECTION_UNBIASED, .halved = true, .sizes = SPLIT_FREE } },
	{ "bisection-unbiased-packed", NULL, MAY_TAKE_LONG | HAS_CUTS | HAS_ROOM, 70,
	  { .by = SPLIT_BY_BISECTION_UNBIASED, .halved = true, .sizes = SPLIT_PACKED } },
};

const unsigned ncandidates = sizeof(candidates) / sizeof(candidates[0]);
