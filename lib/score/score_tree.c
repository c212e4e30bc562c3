/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_tree.h"

#define BLOCK ((size_t) 64 << 10)	/* enough for a node of 128 cores */

struct score_block {
	struct score_block *next;
	size_t bytes;
};

void *score_arena_get(struct score_arena *a, size_t bytes)
{
	char *got;

	bytes = (bytes + 7) & ~(size_t) 7;
	if (bytes > a->room) {
		size_t twice = a->blocks ? 2 * a->blocks->bytes : BLOCK, size = twice > bytes ? twice : bytes;
		struct score_block *b = malloc(sizeof(*b) + size);

		if (!b)
			return NULL;
		*b = (struct score_block){ .next = a->blocks, .bytes = size };
		a->blocks = b;
		a->at = (char *) (b + 1);
		a->room = size;
	}
	got = a->at;
	a->at += bytes;
	a->room -= bytes;
	return got;
}

void score_arena_free(struct score_arena *a)
{
	while (a->blocks) {
		struct score_block *b = a->blocks;

		a->blocks = b->next;
		free(b);
	}
	a->at = NULL;
	a->room = 0;
}

/*	  node  package  die  numa  l3  l2 */
const signed char score_field[SCORE_ROWS][LEVEL_CORE] = {
	[SCORE_BEYOND]	= {  0,  0,  0,  0,  0,  0 },
	[SCORE_CUTS]	= { -1, -1, -1,  1,  2, -1 },
	[SCORE_TOUCHED]	= { -1,  3,  4,  5,  6,  7 },
	[SCORE_OPEN]	= { -1,  8,  9, 10, 11, 12 },
	[SCORE_BROKEN]	= { -1, 13, 14, 15, 16, 17 },
	[SCORE_LEFT]	= { 23, 18, 19, 20, 21, 22 },
};

static unsigned field_get(const struct score_cost *c, int field)
{
	return c->word[field / 4] >> (48 - field % 4 * 16) & 0xffff;
}

int score_compare(const struct score_cost *a, const struct score_cost *b)
{
	for (int w = 0; w < SCORE_WORDS; w++)
		if (a->word[w] != b->word[w])
			return a->word[w] < b->word[w] ? -1 : 1;
	return 0;
}

int score_differ(const struct score_cost *a, const struct score_cost *b, enum score_row *row, enum level *level)
{
	int first = 4 * SCORE_WORDS;

	for (int r = 0; r < SCORE_ROWS; r++)
		for (int l = LEVEL_NODE; l < LEVEL_CORE; l++) {
			int field = score_field[r][l];

			if (field < 0 || field >= first || field_get(a, field) == field_get(b, field))
				continue;
			first = field;
			*row = r;
			*level = l;
		}
	return score_compare(a, b);
}

unsigned score_count(const struct score_cost *c, enum score_row row, enum level level)
{
	int field = row < SCORE_ROWS && level < LEVEL_CORE ? score_field[row][level] : -1;

	return field < 0 ? 0 : field_get(c, field);
}

void cost_set(struct score_cost *c, enum score_row row, enum level level, unsigned n)
{
	cost_count(c, row, level, (uint64_t) n - score_count(c, row, level));
}

/* Shapes have few kinds of parts, and the next part mostly has one of the last kinds. NULL when memory is short. */
static const struct score_kind *kind_of(struct score_tree *t, unsigned counts, struct score_arena *arena)
{
	struct score_kind *kind = t->kinds;

	while (kind && kind->counts != counts)
		kind = kind->next;
	if (kind || !(kind = score_arena_get(arena, sizeof(*kind))))
		return kind;
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
	return t->kinds = kind;
}

void score_finish(const struct score_tree *t, unsigned k, struct score_cost *cost)
{
	if (t->wanted != LEVEL_NODE)
		cost_set(cost, SCORE_BEYOND, LEVEL_NODE, score_count(cost, SCORE_BEYOND, LEVEL_NODE) - 1);
	/* The parts have counted pieces: one for each task and one more for each cut. */
	for (int l = LEVEL_NUMA; t->cuts && l <= LEVEL_L3; l++)
		cost_set(cost, SCORE_CUTS, l, score_count(cost, SCORE_CUTS, l) - score_pieces(t, k));
	cost_count(cost, SCORE_LEFT, LEVEL_NODE, t->have - k);
}

#define LEVELS (BIT(LEVEL_CORE) - BIT(LEVEL_PACKAGE))
#define COVERS (BIT(COVER_COUNT) - 1)

/*
 * The substitute for a level that a shape lacks: the domains of another cover there, or, if these are larger,
 * everything together that lacks it. A core without any cover stands for itself. In the order in which they depend on
 * each other.
 */
static const struct {
	unsigned cover, level, other;
} covers[] = {
	{ LEVEL_PACKAGE, LEVEL_PACKAGE, LEVEL_NODE },
	{ LEVEL_DIE, LEVEL_DIE, LEVEL_PACKAGE },
	{ LEVEL_NUMA, LEVEL_NUMA, LEVEL_DIE },
	{ LEVEL_L2, LEVEL_L2, LEVEL_CORE },
	{ LEVEL_L3, LEVEL_L3, LEVEL_L2 },
	{ COVER_WITHIN_L3, LEVEL_L3, LEVEL_NUMA },
	{ COVER_WITHIN_L2, LEVEL_L2, COVER_WITHIN_L3 },
};

#define ROWS (sizeof(covers) / sizeof(covers[0]))

/* Of each domain of the shape, while the tree is built. */
struct domain_state {
	unsigned inside;	/* levels inside it */
	unsigned around;	/* levels that count, its own and those around it */
	unsigned within;	/* covers */
	int part;
};

uint16_t *score_count_before(const uint64_t *set, unsigned cores, struct score_arena *arena)
{
	uint16_t *before = score_arena_get(arena, (cores + 1) * sizeof(*before));
	unsigned n = 0;

	if (!before)
		return NULL;
	for (unsigned c = 0; c < cores; c++) {
		before[c] = n;
		n += core_set_has(set, c);
	}
	before[cores] = n;
	return before;
}

/*
 * The covers that a domain belongs to. Either it has the level, with nothing of that level inside; or it lacks the
 * level, as does everything around and inside it, and it belongs to the other cover or, as the outermost that lacks the
 * level, is inside a domain of that.
 */
static unsigned covers_of(const struct shape *shape, size_t d, struct domain_state *states)
{
	static const struct domain_state none = { .inside = LEVELS };
	const struct shape_domain *at = &shape->domains[d];
	const struct domain_state *parent = d ? &states[at->parent] : &none;
	struct domain_state *s = &states[d];
	unsigned counts = d ? 0 : BIT(LEVEL_NODE), has = BIT(at->level) & ~s->inside, lacks, outermost;

	s->around = parent->around | has;
	lacks = LEVELS & ~(s->inside | s->around);
	outermost = lacks & parent->inside;
	for (size_t i = 0; i < ROWS; i++) {
		unsigned level = covers[i].level, other = covers[i].other;
		unsigned is = has >> level | (lacks >> level & counts >> other) |
			(outermost >> level & parent->within >> other);

		counts |= (is & 1) << covers[i].cover;
	}
	s->within = parent->within | counts;
	return counts;
}

/* parent: -1 for the node. */
static struct score_part *part_add(struct score_tree *t, int parent)
{
	struct score_part *part = &t->parts[t->nparts++];

	*part = (struct score_part){ .next = t->nparts, .parent = parent };
	if (parent >= 0)
		t->parts[parent].kids++;
	return part;
}

/*
 * A domain with a single core counts as that core. Adjacent such cores in a domain cost the same: they form a run.
 * before: as score_count_before of the free cores.
 */
static void parts_add(struct score_tree *t, struct domain_state *states, const uint16_t *before)
{
	const struct shape *s = t->shape;
	struct score_part *part;
	unsigned done = 0;	/* cores already counted: domains inside them are skipped */

	for (size_t d = 0; d < s->ndomains; d++) {
		const struct shape_domain *at = &s->domains[d];
		const struct domain_state *around = at->parent < 0 ? NULL : &states[at->parent];
		unsigned have = before[at->first + at->cores] - before[at->first];

		if (at->first < done)
			continue;
		if (at->cores > 1) {
			unsigned counts = covers_of(s, d, states);

			if (!have)
				continue;
			states[d].part = t->nparts;
			part = part_add(t, around ? around->part : -1);
			part->first = at->first;
			part->cores = at->cores;
			part->have = part->can = have;
			part->counts = counts;
			part->within = states[d].within;
			continue;
		}
		done = at->first + 1;
		if (!have)
			continue;
		part = t->nparts ? &t->parts[t->nparts - 1] : NULL;
		if (!part || part->kids || part->parent != (around ? around->part : -1)) {
			part = part_add(t, around ? around->part : -1);
			part->first = at->first;
			part->counts = COVERS & ~(around ? around->within : 0);
			part->within = COVERS;
		}
		part->cores = done - part->first;
		part->have++;
		part->can++;
	}
	for (unsigned i = t->nparts; i-- > 1;) {
		unsigned *next = &t->parts[t->parts[i].parent].next;

		if (*next < t->parts[i].next)
			*next = t->parts[i].next;
	}
}

int score_tree_init(struct score_tree *t, const struct shape *shape, const uint64_t *free_cores,
		    const struct score_need *need, enum level level, struct score_arena *arena)
{
	struct score_task task = score_task_of(need);
	struct domain_state *states = score_arena_get(arena, shape->ndomains * sizeof(*states));
	uint16_t *before = score_count_before(free_cores, shape->cores, arena);

	*t = (struct score_tree){
		.shape = shape, .free_cores = free_cores, .task_cores = need->task_cores ? need->task_cores : 1,
		.task = task, .cuts = task.core_cpus % task.cpus,
		.wanted = level == LEVEL_L3 ? COVER_WITHIN_L3 : level == LEVEL_L2 ? COVER_WITHIN_L2 :
			level < LEVEL_L3 ? level : LEVEL_NODE,
		.parts = score_arena_get(arena, shape->ndomains * sizeof(*t->parts)),
	};
	if (!t->parts || !states || !before)
		return -1;
	t->have = before[shape->cores];
	/* Counts have 16 bits. */
	t->cuts &= (uint64_t) shape->cores * score_pieces(t, 1) <= SCORE_MAX_CORES;
	memset(states, 0, shape->ndomains * sizeof(*states));
	for (size_t d = shape->ndomains - 1; d > 0; d--)
		states[shape->domains[d].parent].inside |= states[d].inside | BIT(shape->domains[d].level);
	t->levels = states[0].inside & LEVELS;
	parts_add(t, states, before);
	for (struct score_part *part = t->parts; part < t->parts + t->nparts; part++)
		if (!(part->kind = kind_of(t, part->counts, arena)))
			return -1;
	return 0;
}

/* From the last part to the first, so that those inside a part come before it. */
void score_tree_limit(struct score_tree *t, const struct score_need *need)
{
	if (!need->nlimits)
		return;
	for (unsigned i = 0; i < t->nparts; i++)
		t->parts[i].can = t->parts[i].kids ? 0 : t->parts[i].have;
	for (unsigned i = t->nparts; i-- > 0;) {
		struct score_part *part = &t->parts[i];

		for (unsigned k = 0; part->kids && k < need->nlimits; k++) {
			const struct score_limit *l = &need->limits[k];

			if (l->first == part->first && l->cores == part->cores && l->most < part->can)
				part->can = l->most;
		}
		t->limited |= part->can < part->have;
		if (part->parent >= 0)
			t->parts[part->parent].can += part->can;
	}
}

/* --- plans --- */

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
	unsigned rest = excess(n, b->most), low = a->least > rest ? a->least : rest;
	unsigned high = min_of(a->most, n - b->least), best = high;
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

/* Plans the choice of any number of all cores. */
static const struct score_plan *score_plan_all(const struct score_tree *t, struct score_arena *arena)
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

unsigned score_table_within(const struct score_table *t)
{
	unsigned few = 0, most = t->have;

	while (few < most) {
		unsigned half = few + (most - few + 1) / 2;

		if (score_count(&t->cost[half - 1], SCORE_BEYOND, LEVEL_NODE))
			most = half - 1;
		else
			few = half;
	}
	return few;
}
