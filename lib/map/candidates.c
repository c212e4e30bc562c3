/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>

#include "map/candidates.h"
#include "map/repair.h"
#include "map/scotch.h"
#include "map/split.h"

static int no_memory(const struct problem *b)
{
	return err_set(b->err, "mapping: out of memory");
}

/* The slot of each place, and behind that the first place of each host. */
static unsigned *index_new(const struct problem *b)
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
	const unsigned *share, *first;	/* of each host: its ranks, its first place */
	unsigned *place;		/* of each rank */
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

static int map_dealt(const struct problem *b, unsigned *slot, void (*deal)(const struct hand *d))
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

static int map_block(const struct problem *b, unsigned *slot)
{
	return map_dealt(b, slot, deal_block);
}

static int map_cyclic(const struct problem *b, unsigned *slot)
{
	return map_dealt(b, slot, deal_cyclic);
}

static int map_scotch(const struct problem *b, unsigned nslots, enum scotch_method method, unsigned *slot)
{
	if (scotch_map(b->m, b->s, nslots, method, b->seed, slot, b->err))
		return -1;
	return repair_mapping(b->m, b->s, slot) ? no_memory(b) : 0;
}

static int map_netloc(const struct problem *b, unsigned *slot)
{
	return map_scotch(b, b->s->n, SCOTCH_MAP_NETLOC, slot);
}

static int map_default(const struct problem *b, unsigned *slot)
{
	return map_scotch(b, b->s->n, SCOTCH_MAP_DEFAULT, slot);
}

static int map_recursive(const struct problem *b, unsigned *slot)
{
	return map_scotch(b, b->s->n, SCOTCH_MAP_RECURSIVE, slot);
}

/* Scotch spreads few ranks over many slots. As many slots as ranks make them stay together. */
static int map_compact(const struct problem *b, unsigned *slot)
{
	return map_scotch(b, b->m->ranks, SCOTCH_MAP_DEFAULT, slot);
}

static int map_split(const struct problem *b, unsigned *slot)
{
	return split_map(b->m, b->s, (struct split_way){0}, b->seed, slot, b->err);
}

static int map_packed(const struct problem *b, unsigned *slot)
{
	return split_map(b->m, b->s, (struct split_way){ .packed = true, .halved = true }, b->seed, slot, b->err);
}

static int map_halved(const struct problem *b, unsigned *slot)
{
	return split_map(b->m, b->s, (struct split_way){ .halved = true }, b->seed, slot, b->err);
}

static bool has_cuts(const struct problem *b)
{
	for (unsigned t = 0; t < b->s->strata; t++)
		if (b->s->stratum[t].is_cut)
			return true;
	return false;
}

static bool has_room(const struct problem *b)
{
	return b->m->ranks < b->s->n;
}

const struct candidate candidates[] = {
	[CANDIDATE_BLOCK] = { "block", map_block, NULL },
	[CANDIDATE_CYCLIC] = { "cyclic", map_cyclic, NULL },
	[CANDIDATE_SCOTCH] = { "scotch", map_netloc, NULL },
	{ "split", map_split, NULL },
	{ "split-halved", map_halved, has_cuts },
	{ "split-packed", map_packed, has_room },
	{ "scotch-default", map_default, NULL },
	{ "scotch-recursive", map_recursive, NULL },
	{ "scotch-compact", map_compact, has_room },
};

const unsigned ncandidates = sizeof(candidates) / sizeof(candidates[0]);
