/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "score/score_plan.h"

struct score_table {
	unsigned have;
	struct score_cost cost[];	/* of 1 .. have cores */
};

static struct score_table *table_of(const struct score_tree *t, struct score_arena *arena)
{
	const struct score_plan *plan = t->have ? score_plan_all(t, arena) : NULL;
	struct score_table *table;

	if (t->have && !plan)
		return NULL;
	if (!(table = malloc(sizeof(*table) + t->have * sizeof(*table->cost))))
		return NULL;
	table->have = t->have;
	for (unsigned k = 1; k <= t->have; k++) {
		table->cost[k - 1] = *score_plan_cost(plan, k);
		score_finish(t, k, &table->cost[k - 1]);
	}
	return table;
}

struct score_table *score_table_new(const struct shape *shape, const uint64_t *free_cores,
				    const struct score_need *need)
{
	struct score_table *table = NULL;
	struct score_arena arena = {0};
	struct score_tree tree;

	if (shape->cores > SCORE_MAX_CORES)
		return NULL;
	if (!score_tree_init(&tree, shape, free_cores, need, need->level, &arena))
		table = table_of(&tree, &arena);
	score_arena_free(&arena);
	return table;
}

void score_table_free(struct score_table *t)
{
	free(t);
}

size_t score_table_bytes(const struct score_table *t)
{
	return sizeof(*t) + t->have * sizeof(*t->cost);
}

const struct score_cost *score_table_cost(const struct score_table *t, unsigned k)
{
	return k && k <= t->have ? &t->cost[k - 1] : NULL;
}
