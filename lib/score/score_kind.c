/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_kind.h"

static void kind_init(const struct score_tree *t, struct score_kind *kind, unsigned counts)
{
	*kind = (struct score_kind){ .next = t->kinds, .counts = counts };
	for (int l = LEVEL_PACKAGE; l < LEVEL_CORE; l++) {
		if (!(counts & BIT(l)))
			continue;
		cost_count(&kind->all, SCORE_TOUCHED, l, 1);
		cost_count(&kind->some, SCORE_OPEN, l, 1);
		cost_count(&kind->intact, SCORE_BROKEN, l, 1);
		cost_count(&kind->left, SCORE_LEFT, l, 1);
		if (t->cuts && (l == LEVEL_NUMA || l == LEVEL_L3))
			cost_count(&kind->piece, SCORE_CUTS, l, 1);
	}
	if (t->wanted != LEVEL_NODE && counts & BIT(t->wanted))
		cost_count(&kind->all, SCORE_BEYOND, LEVEL_NODE, 1);
	cost_add(&kind->some, &kind->all);
	cost_add(&kind->intact, &kind->some);
}

/* Shapes have few kinds of parts, and the next part mostly has one of the last kinds. */
static const struct score_kind *kind_of(struct score_tree *t, unsigned counts, struct score_arena *arena)
{
	struct score_kind *kind = t->kinds;

	while (kind && kind->counts != counts)
		kind = kind->next;
	if (kind || !(kind = score_arena_get(arena, sizeof(*kind))))
		return kind;
	kind_init(t, kind, counts);
	return t->kinds = kind;
}

int score_kinds_set(struct score_tree *t, struct score_arena *arena)
{
	for (struct score_part *part = t->parts; part < t->parts + t->nparts; part++)
		if (!(part->kind = kind_of(t, part->counts, arena)))
			return -1;
	return 0;
}

/* The parts have counted pieces: one for each task and one more for each cut. */
static void cuts_finish(const struct score_tree *t, unsigned k, struct score_cost *cost)
{
	unsigned tasks = score_pieces(t, k);

	for (int l = LEVEL_NUMA; l <= LEVEL_L3; l++)
		cost_set(cost, SCORE_CUTS, l, score_count(cost, SCORE_CUTS, l) - tasks);
}

void score_finish(const struct score_tree *t, unsigned k, struct score_cost *cost)
{
	if (t->wanted != LEVEL_NODE)
		cost_set(cost, SCORE_BEYOND, LEVEL_NODE, score_count(cost, SCORE_BEYOND, LEVEL_NODE) - 1);
	if (t->cuts)
		cuts_finish(t, k, cost);
	cost_count(cost, SCORE_LEFT, LEVEL_NODE, t->have - k);
}
