/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/repair.h"

#include <stdlib.h>
#include <string.h>

/* Of several ranks on a slot, keeps the one with the most communication. */
static void homes_keep(const struct matrix *m, const double *volume, unsigned *slot, unsigned *rank_on)
{
	for (unsigned r = 0; r < m->ranks; r++) {
		unsigned *home = &rank_on[slot[r]];

		if (*home != SLOT_NONE && volume[*home] >= volume[r]) {
			slot[r] = SLOT_NONE;
			continue;
		}
		if (*home != SLOT_NONE)
			slot[*home] = SLOT_NONE;
		*home = r;
	}
}

static unsigned home_find(const struct matrix *m, const struct slots *s, const unsigned *slot, const unsigned *rank_on,
			  unsigned rank)
{
	unsigned best = SLOT_NONE;
	double least = 0;

	for (unsigned at = 0; at < s->n; at++) {
		double cost;

		if (rank_on[at] != SLOT_NONE)
			continue;
		cost = slots_rank_cost(m, s, slot, rank, at);
		if (best == SLOT_NONE || cost < least) {
			best = at;
			least = cost;
		}
	}
	return best;
}

int repair_mapping(const struct matrix *m, const struct slots *s, unsigned *slot)
{
	double *volume = calloc(m->ranks, sizeof(*volume));
	unsigned *rank_on = malloc(s->n * sizeof(*rank_on));
	int rc = -1;

	if (!volume || !rank_on)
		goto out;
	memset(rank_on, 0xff, s->n * sizeof(*rank_on));
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			volume[r] += m->weight[i];
	homes_keep(m, volume, slot, rank_on);
	for (unsigned r = 0; r < m->ranks; r++)
		if (slot[r] == SLOT_NONE) {
			slot[r] = home_find(m, s, slot, rank_on, r);
			rank_on[slot[r]] = r;
		}
	rc = 0;
out:
	free(volume);
	free(rank_on);
	return rc;
}
