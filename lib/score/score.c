/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score.h"

#include "score/score_tree.h"

/* --- FIT_SPREAD, as described at score_pick --- */

struct spread {
	const struct score_tree *tree;
	struct score_arena *arena;
	struct domain {		/* a domain of the cover, for tasks */
		unsigned part, core;	/* core: of a run, the core itself */
		unsigned have, capacity;	/* cores; tasks that fit on these */
		unsigned tasks;
	} *domains;
	unsigned ndomains;
	unsigned *tasks;	/* by part */
};

/* Reduces the capacities of the domains inside a part to what the part can have, the largest and last first. */
static void capacities_limit(struct spread *s, unsigned part)
{
	const struct score_part *p = &s->tree->parts[part];
	unsigned most = p->can / s->tree->task_cores;

	for (;;) {
		struct domain *largest = NULL;
		unsigned capacities = 0;

		for (struct domain *domain = s->domains; domain < s->domains + s->ndomains; domain++) {
			if (domain->part <= part || domain->part >= p->next)
				continue;
			capacities += domain->capacity;
			if (!largest || domain->capacity >= largest->capacity)
				largest = domain;
		}
		if (capacities <= most)
			return;
		largest->capacity--;
	}
}

static int spread_init(struct spread *s)
{
	const struct score_tree *t = s->tree;

	s->domains = score_arena_get(s->arena, t->have * sizeof(*s->domains));
	s->tasks = score_arena_get(s->arena, t->nparts * sizeof(*s->tasks));
	if (!s->domains || !s->tasks)
		return -1;
	memset(s->tasks, 0, t->nparts * sizeof(*s->tasks));
	for (unsigned i = 0; i < t->nparts; i++) {
		const struct score_part *part = &t->parts[i];

		if (!(part->counts & BIT(t->wanted)))
			continue;
		if (part->kids)
			s->domains[s->ndomains++] = (struct domain){ .part = i, .have = part->have,
				.capacity = part->can / t->task_cores };
		for (unsigned c = part->first; !part->kids && c < part->first + part->cores; c++)
			if (core_set_has(t->free_cores, c))
				s->domains[s->ndomains++] = (struct domain){ .part = i, .core = c, .have = 1,
					.capacity = 1 / t->task_cores };
	}
	for (unsigned i = t->nparts; t->limited && i-- > 0;)
		if (t->parts[i].kids && t->parts[i].can < t->parts[i].have)
			capacities_limit(s, i);
	return 0;
}

static void task_assign(struct spread *s, struct domain *domain)
{
	domain->tasks++;
	for (int p = domain->part; p >= 0; p = s->tree->parts[p].parent)
		s->tasks[p]++;
}

/* The numbers of tasks in the package, die, NUMA node and L3 around a domain, as one comparable number. */
static uint64_t domain_load(const struct spread *s, const struct domain *domain)
{
	uint64_t load = domain->tasks * UINT64_C(0x0001000100010001);

	for (int p = s->tree->parts[domain->part].parent; p >= 0; p = s->tree->parts[p].parent)
		for (int l = LEVEL_PACKAGE; l <= LEVEL_L3; l++)
			if (s->tree->parts[p].counts & BIT(l))
				load += (uint64_t) (s->tasks[p] - domain->tasks) << 16 * (LEVEL_L3 - l);
	return load;
}

/*
 * Assigns round by round one more task to each domain, to minimise the most in one domain. Returns that number, or 0.
 */
static unsigned assign_tasks(struct spread *s, unsigned tasks)
{
	struct domain *end = s->domains + s->ndomains;

	for (unsigned round = 0;; round++) {
		unsigned domains = 0;		/* with capacity for one more task */

		for (struct domain *domain = s->domains; domain < end; domain++)
			domains += domain->capacity > round;
		if (!tasks)
			return round;
		if (!domains)
			return 0;
		for (struct domain *domain = s->domains; domains <= tasks && domain < end; domain++)
			if (domain->capacity > round)
				task_assign(s, domain);
		if (domains <= tasks) {
			tasks -= domains;
			continue;
		}
		/* The last round: more free cores come before fewer, and then less loaded domains. */
		while (tasks--) {
			struct domain *best = NULL;

			for (struct domain *domain = s->domains; domain < end; domain++)
				if (domain->capacity > round && domain->tasks <= round &&
				    (!best || domain->have > best->have ||
				     (domain->have == best->have && domain_load(s, domain) < domain_load(s, best))))
					best = domain;
			task_assign(s, best);
		}
		return round + 1;
	}
}

static int domains_mark(const struct spread *s, uint64_t *chosen)
{
	const struct score_tree *t = s->tree;

	for (const struct domain *domain = s->domains; domain < s->domains + s->ndomains; domain++) {
		struct score_step step = { .cover = LEVEL_CORE, .count = domain->tasks * t->task_cores, .cores = 1 };
		const struct score_plan *plan;

		if (!domain->tasks)
			continue;
		if (!t->parts[domain->part].kids) {
			core_set_add(chosen, domain->core);
			continue;
		}
		if (!(plan = score_plan_make(t, domain->part, &step, s->arena)))
			return -1;
		score_plan_mark(t, plan, step.count, chosen);
	}
	return 0;
}

/* The cost of the chosen cores; left over counts the cores of a domain that others hold. */
static int chosen_cost(const struct spread *s, const uint64_t *chosen, struct score_cost *cost)
{
	const struct score_tree *t = s->tree;
	const uint16_t *before = score_count_before(chosen, t->shape->cores, s->arena);

	if (!before)
		return -1;
	*cost = (struct score_cost){0};
	for (const struct score_part *part = t->parts; part < t->parts + t->nparts; part++) {
		unsigned taken = before[part->first + part->cores] - before[part->first];

		if (part->kids)
			score_domain_add(t, part, taken, part->cores - part->have, cost);
		else
			score_run_add(t, part, taken, cost);
	}
	score_finish(t, before[t->shape->cores], cost);
	return 0;
}

/* Into chosen[], which is empty. 0; 1 when the tasks do not all fit as a whole; -1 when memory is short. */
static int pick_spread(const struct score_tree *t, const struct score_need *need, uint64_t *chosen,
		       struct score_cost *cost, struct score_arena *arena)
{
	struct spread s = { .tree = t, .arena = arena };
	unsigned most;

	if (need->cores % t->task_cores)
		return 1;
	if (spread_init(&s))
		return -1;
	if (!(most = assign_tasks(&s, need->cores / t->task_cores)))
		return 1;
	if (domains_mark(&s, chosen) || chosen_cost(&s, chosen, cost))
		return -1;
	cost_set(cost, SCORE_BEYOND, LEVEL_NODE, most - 1);
	cost_set(cost, SCORE_LEFT, LEVEL_NODE, t->shape->cores - t->have);
	return 0;
}

/* --- FIT_PREFER and FIT_REQUIRE --- */

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

static int pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen,
		struct score_cost *cost, struct score_arena *arena)
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
		rc = pick(shape, free_cores, need, chosen, cost, &arena);
	score_arena_free(&arena);
	return rc;
}
