/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_plan.h"

#include <limits.h>
#include <stdlib.h>

struct planner {
	const struct score_tree *tree;
	struct score_arena *arena;
	unsigned at;		/* the next part in preorder */
};

/* What a part is to provide: a step, up to `most` of it; at most `spare` may remain. */
struct plan_bounds {
	const struct score_step *step;
	unsigned most, spare;
};

static struct score_plan *plan_part(struct planner *p, const struct plan_bounds *bounds);

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned excess(unsigned a, unsigned b)
{
	return a > b ? a - b : 0;
}

static unsigned max_of(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* The costs of a new plan are not initialised. */
static struct score_plan *plan_new(struct planner *p, const struct plan_bounds *bounds, unsigned have)
{
	struct score_plan *plan = score_arena_get(p->arena, sizeof(*plan));

	if (!plan)
		return NULL;
	*plan = (struct score_plan){ .have = have, .least = excess(have, bounds->spare),
				     .most = min_of(have, bounds->most) };
	plan->cost = score_arena_get(p->arena, (plan->most - plan->least + 1) * sizeof(*plan->cost));
	return plan->cost ? plan : NULL;
}

/* Equal cores: each costs the same, the first ones are chosen. */
static struct score_plan *plan_run(struct planner *p, const struct plan_bounds *bounds)
{
	const struct score_part *part = &p->tree->parts[p->at];
	struct score_plan *plan = plan_new(p, bounds, bounds->step->cores == 1 ? part->have : 0);

	if (!plan)
		return NULL;
	plan->run = p->at++;
	plan->cost[0] = (struct score_cost){0};
	score_run_add(p->tree, part, plan->least, &plan->cost[0]);
	for (unsigned i = 1; i <= plan->most - plan->least; i++) {
		plan->cost[i] = plan->cost[i - 1];
		score_run_add(p->tree, part, 1, &plan->cost[i]);
	}
	return plan;
}

/* One domain of a step, or none. */
static struct score_plan *plan_one(struct planner *p, const struct plan_bounds *bounds)
{
	const struct score_part *part = &p->tree->parts[p->at];
	const struct score_step *next = bounds->step + 1;
	struct plan_bounds inner = { .step = next, .most = next->count, .spare = UINT_MAX };
	struct score_plan *plan, *first = NULL;
	const struct score_cost *cost = NULL;

	if (part->can >= bounds->step->cores) {
		if (next->cover == LEVEL_CORE && !p->tree->limited)
			inner.spare = part->have - next->count;
		if (!(first = plan_part(p, &inner)))
			return NULL;
		cost = score_plan_cost(first, next->count);
	}
	p->at = part->next;
	if (!(plan = plan_new(p, bounds, cost ? 1 : 0)))
		return NULL;
	plan->cost[0] = (struct score_cost){0};
	if (cost)
		plan->cost[1] = *cost;
	plan->first = first;
	plan->each = next->count;
	return plan;
}

/* The least cost of n from two plans, and the number from the first: among equal costs, the most. */
static unsigned best_split(const struct score_plan *a, const struct score_plan *b, unsigned n, struct score_cost *cost)
{
	unsigned low = max_of(a->least, excess(n, b->most)), high = min_of(a->most, n - b->least), best = high;
	const struct score_cost *x = &a->cost[high - a->least], *y = &b->cost[n - high - b->least];
	struct score_cost least = cost_sum(x, y);

	while (high-- > low) {
		x--;
		y++;
		if (!cost_sum_is_less(x, y, &least))
			continue;
		best = high;
		least = cost_sum(x, y);
	}
	*cost = least;
	return best;
}

/* The next `count` parts, divided into halves, so that tables are small. */
static struct score_plan *plan_parts(struct planner *p, const struct plan_bounds *bounds, unsigned count)
{
	struct score_plan *a, *b, *plan;

	if (count == 1)
		return plan_part(p, bounds);
	if (!(a = plan_parts(p, bounds, count - count / 2)) || !(b = plan_parts(p, bounds, count / 2)) ||
	    !(plan = plan_new(p, bounds, a->have + b->have)))
		return NULL;
	for (unsigned n = plan->least; n <= plan->most; n++)
		best_split(a, b, n, &plan->cost[n - plan->least]);
	plan->first = a;
	plan->second = b;
	return plan;
}

static struct score_plan *plan_part(struct planner *p, const struct plan_bounds *bounds)
{
	const struct score_part *part = &p->tree->parts[p->at];
	unsigned cores = bounds->step->cores;
	struct score_plan *plan;

	if (bounds->step->cover != LEVEL_CORE && part->within & BIT(bounds->step->cover) && part->kids)
		return plan_one(p, bounds);
	if (!part->kids)
		return plan_run(p, bounds);
	p->at++;
	if (!(plan = plan_parts(p, bounds, part->kids)))
		return NULL;
	plan->have = min_of(plan->have, part->can / cores);
	plan->most = min_of(plan->most, plan->have);
	for (unsigned n = plan->least; n <= plan->most; n++)
		score_domain_add(p->tree, part, n * cores, part->have - n * cores, &plan->cost[n - plan->least]);
	return plan;
}

const struct score_plan *score_plan_make(const struct score_tree *t, unsigned part, const struct score_step *steps,
					 struct score_arena *arena)
{
	struct planner p = { .tree = t, .arena = arena, .at = part };
	struct plan_bounds bounds = { .step = steps, .most = steps->count, .spare = UINT_MAX };

	if (steps->cover == LEVEL_CORE && steps->count <= t->parts[part].have && !t->limited)
		bounds.spare = t->parts[part].have - steps->count;
	return plan_part(&p, &bounds);
}

const struct score_plan *score_plan_all(const struct score_tree *t, struct score_arena *arena)
{
	struct score_step all = { .cover = LEVEL_CORE, .count = t->have, .cores = 1 };
	struct planner p = { .tree = t, .arena = arena };
	struct plan_bounds bounds = { .step = &all, .most = t->have, .spare = t->have };

	return plan_part(&p, &bounds);
}

const struct score_cost *score_plan_cost(const struct score_plan *plan, unsigned n)
{
	return n < plan->least || n > plan->most ? NULL : &plan->cost[n - plan->least];
}

void score_plan_mark(const struct score_tree *t, const struct score_plan *plan, unsigned n, uint64_t *chosen)
{
	struct score_cost cost;
	unsigned split;

	if (!n)
		return;
	if (!plan->first) {
		for (unsigned c = t->parts[plan->run].first; n; c++)
			if (core_set_has(t->free_cores, c)) {
				core_set_add(chosen, c);
				n--;
			}
	} else if (!plan->second) {
		score_plan_mark(t, plan->first, plan->each, chosen);
	} else {
		split = best_split(plan->first, plan->second, n, &cost);
		score_plan_mark(t, plan->first, split, chosen);
		score_plan_mark(t, plan->second, n - split, chosen);
	}
}

struct score_table {
	unsigned have;
	struct score_cost cost[];	/* of 1 .. have cores */
};

struct score_table *score_table_new(const struct shape *shape, const uint64_t *free_cores,
				    const struct score_need *need)
{
	const struct score_plan *plan = NULL;
	struct score_table *table = NULL;
	struct score_arena arena = {0};
	struct score_tree t;

	if (shape->cores > SCORE_MAX_CORES)
		return NULL;
	if (!score_tree_init(&t, shape, free_cores, need, need->level, &arena) &&
	    (!t.have || (plan = score_plan_all(&t, &arena))) &&
	    (table = malloc(sizeof(*table) + t.have * sizeof(*table->cost)))) {
		table->have = t.have;
		for (unsigned k = 1; k <= t.have; k++) {
			table->cost[k - 1] = *score_plan_cost(plan, k);
			score_finish(&t, k, &table->cost[k - 1]);
		}
	}
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
