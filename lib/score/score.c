/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score.h"

#include <string.h>

#include "score/score_plan.h"
#include "score/score_spread.h"

/* The steps of a path, or the one of a job without: 1 when the shape cannot have them. */
static int steps_of(const struct score_tree *t, const struct score_need *need, struct score_step *steps)
{
	const struct request_path *path = need->path;
	unsigned cores = 1;

	if (!path || !path->steps) {
		steps[0] = (struct score_step){ .cover = LEVEL_CORE, .count = need->cores, .cores = 1 };
		return 0;
	}
	for (unsigned i = path->steps; i-- > 0;) {
		enum level level = path->step[i].level;

		if ((level == LEVEL_L3 || level == LEVEL_L2) && !(t->levels & BIT(level)))
			return 1;
		steps[i] = (struct score_step){ .cover = level, .count = path->step[i].count, .cores = cores };
		if (__builtin_mul_overflow(cores, path->step[i].count, &cores))
			return 1;
	}
	return cores == need->cores ? 0 : 1;
}

static int pick_least(const struct score_tree *t, const struct score_need *need, uint64_t *chosen,
		      struct score_cost *cost, struct score_arena *arena)
{
	struct score_step steps[PATH_STEPS_MAX];
	const struct score_cost *least;
	const struct score_plan *plan;

	if (steps_of(t, need, steps))
		return 1;
	if (!(plan = score_plan_make(t, 0, steps, arena)))
		return -1;
	if (!(least = score_plan_cost(plan, steps->count)))
		return 1;
	*cost = *least;
	score_finish(t, need->cores, cost);
	if (need->fit == FIT_REQUIRE && score_count(cost, SCORE_BEYOND, need->level))
		return 1;
	score_plan_mark(t, plan, steps->count, chosen);
	return 0;
}

static int pick_spread(const struct score_tree *t, const struct score_need *need, uint64_t *chosen,
		       struct score_cost *cost, struct score_arena *arena)
{
	if (need->cores % t->task_cores)
		return 1;
	return score_spread(t, need->cores / t->task_cores, chosen, cost, arena);
}

void score_keep_kind(const struct shape *shape, unsigned kind, uint64_t *cores)
{
	for (unsigned c = 0; c < shape->cores; c++)
		if ((shape->kinds ? shape->kinds[c] : 0) != kind)
			core_set_remove(cores, c);
}

/* The free cores of the kind that a path names: a copy, or all. NULL when memory is short. */
static const uint64_t *cores_of_kind(const struct shape *shape, const uint64_t *free_cores,
				     const struct request_path *path, struct score_arena *arena)
{
	bool performance = path && path->kind == REQUEST_PERFORMANCE;
	size_t bytes = core_set_words(shape->cores) * sizeof(*free_cores);
	uint64_t *cores;

	if (!path || !path->steps || !path->kind || (performance && shape->nkinds == 1))
		return free_cores;
	if (!(cores = score_arena_get(arena, bytes)))
		return NULL;
	memcpy(cores, free_cores, bytes);
	if (performance)
		score_keep_kind(shape, shape->nkinds - 1, cores);
	else if (shape->nkinds > 1)
		score_keep_kind(shape, 0, cores);
	else
		memset(cores, 0, bytes);
	return cores;
}

static int placement_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
			  uint64_t *chosen, struct score_cost *cost, struct score_arena *arena)
{
	size_t bytes = core_set_words(shape->cores) * sizeof(*chosen);
	bool spread = need->fit == FIT_SPREAD;
	enum level level = spread && need->level == LEVEL_NODE ? LEVEL_L3 : need->level;
	uint64_t *set = score_arena_get(arena, bytes);
	struct score_cost c;
	struct score_tree t;
	int rc;

	if (!set || !(free_cores = cores_of_kind(shape, free_cores, need->path, arena)) ||
	    score_tree_init(&t, shape, free_cores, need, level, arena))
		return -1;
	score_tree_limit(&t, need);
	if (!need->cores || need->cores > t.have || need->cores > t.parts->can)
		return 1;
	memset(set, 0, bytes);
	if ((rc = (spread ? pick_spread : pick_least)(&t, need, set, &c, arena)))
		return rc;
	if (chosen)
		memcpy(chosen, set, bytes);
	*cost = c;
	return 0;
}

int score_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen,
	       struct score_cost *cost)
{
	struct score_arena arena = {0};
	int rc = -1;

	if (shape->cores <= SCORE_MAX_CORES)
		rc = placement_pick(shape, free_cores, need, chosen, cost, &arena);
	score_arena_free(&arena);
	return rc;
}
