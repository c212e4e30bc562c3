/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/repair.h"

#include <stdlib.h>
#include <string.h>

#include "map/swaps.h"

/* Of the ranks on one place the one that talks most stays. */
static void homes_keep(const struct matrix *m, const double *volume, unsigned *place, unsigned *rank_on)
{
	for (unsigned r = 0; r < m->ranks; r++) {
		unsigned *home = &rank_on[place[r]];

		if (*home != SWAPS_FREE && volume[*home] >= volume[r]) {
			place[r] = SWAPS_FREE;
			continue;
		}
		if (*home != SWAPS_FREE)
			place[*home] = SWAPS_FREE;
		*home = r;
	}
}

static unsigned home_find(const struct matrix *m, const struct places *p, const unsigned *place, const unsigned *rank_on,
			  unsigned rank)
{
	unsigned best = SWAPS_FREE;
	double least = 0;

	for (unsigned at = 0; at < p->nplaces; at++) {
		double cost;

		if (rank_on[at] != SWAPS_FREE)
			continue;
		cost = swaps_rank_cost(m, p, place, rank, at);
		if (best == SWAPS_FREE || cost < least) {
			best = at;
			least = cost;
		}
	}
	return best;
}

int repair_mapping(const struct matrix *m, const struct places *p, unsigned *place)
{
	double *volume = calloc(m->ranks, sizeof(*volume));
	unsigned *rank_on = malloc(p->nplaces * sizeof(*rank_on));
	int rc = -1;

	if (!volume || !rank_on)
		goto out;
	memset(rank_on, 0xff, p->nplaces * sizeof(*rank_on));
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			volume[r] += m->weight[i];
	homes_keep(m, volume, place, rank_on);
	for (unsigned r = 0; r < m->ranks; r++)
		if (place[r] == SWAPS_FREE) {
			place[r] = home_find(m, p, place, rank_on, r);
			rank_on[place[r]] = r;
		}
	rc = 0;
out:
	free(volume);
	free(rank_on);
	return rc;
}
