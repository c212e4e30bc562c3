/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_kind.h"

#include <limits.h>
#include <string.h>

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

/* State while a tree is built. For each domain of the shape: */
struct growth {
	struct score_tree *tree;
	struct sprout {
		unsigned inside;	/* levels inside it */
		unsigned around;	/* levels that count, its own and those around it */
		unsigned within;	/* covers */
		int part;
	} *sprouts;
	uint16_t *before;
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

static void levels_inside(struct growth *g)
{
	const struct shape *s = g->tree->shape;

	memset(g->sprouts, 0, s->ndomains * sizeof(*g->sprouts));
	for (size_t d = s->ndomains - 1; d > 0; d--)
		g->sprouts[s->domains[d].parent].inside |= g->sprouts[d].inside | BIT(s->domains[d].level);
	g->tree->levels = g->sprouts[0].inside & LEVELS;
}

/*
 * The covers that a domain belongs to. Either it has the level, with nothing of that level inside; or it lacks the
 * level, as does everything around and inside it, and it belongs to the other cover or, as the outermost that lacks the
 * level, is inside a domain of that.
 */
static unsigned covers_of(struct growth *g, size_t d)
{
	static const struct sprout none = { .inside = LEVELS };
	const struct shape_domain *at = &g->tree->shape->domains[d];
	const struct sprout *parent = d ? &g->sprouts[at->parent] : &none;
	struct sprout *s = &g->sprouts[d];
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

static struct score_part *part_add(struct growth *g, int domain)
{
	struct score_tree *t = g->tree;
	struct score_part *part = &t->parts[t->nparts++];

	*part = (struct score_part){ .next = t->nparts, .parent = domain < 0 ? -1 : g->sprouts[domain].part };
	if (part->parent >= 0)
		t->parts[part->parent].kids++;
	return part;
}

static void domain_add(struct growth *g, size_t d)
{
	const struct shape_domain *at = &g->tree->shape->domains[d];
	unsigned counts = covers_of(g, d), have = g->before[at->first + at->cores] - g->before[at->first];
	struct score_part *part;

	if (!have)
		return;
	g->sprouts[d].part = g->tree->nparts;
	part = part_add(g, at->parent);
	part->first = at->first;
	part->cores = at->cores;
	part->have = part->can = have;
	part->counts = counts;
	part->within = g->sprouts[d].within;
}

/* A domain with a single core counts as that core. Adjacent such cores in a domain cost the same: they form a run. */
static void core_add(struct growth *g, unsigned core, int parent)
{
	struct score_tree *t = g->tree;
	struct score_part *last = t->nparts ? &t->parts[t->nparts - 1] : NULL;

	if (!core_set_has(t->free_cores, core))
		return;
	if (!last || last->kids || last->parent != g->sprouts[parent].part) {
		last = part_add(g, parent);
		last->first = core;
		last->counts = COVERS & ~(parent < 0 ? 0 : g->sprouts[parent].within);
		last->within = COVERS;
	}
	last->cores = core + 1 - last->first;
	last->have++;
	last->can++;
}

static void tree_grow(struct growth *g)
{
	const struct shape *s = g->tree->shape;
	unsigned done = 0;	/* cores already counted: domains inside them are skipped */

	for (size_t d = 0; d < s->ndomains; d++) {
		const struct shape_domain *at = &s->domains[d];

		if (at->first < done)
			continue;
		if (at->cores > 1) {
			domain_add(g, d);
			continue;
		}
		core_add(g, at->first, at->parent);
		done = at->first + 1;
	}
}

static void parts_link(struct score_tree *t)
{
	for (unsigned i = t->nparts; i-- > 1;) {
		unsigned *next = &t->parts[t->parts[i].parent].next;

		if (*next < t->parts[i].next)
			*next = t->parts[i].next;
	}
}

static unsigned cover_wanted(enum level level)
{
	switch (level) {
	case LEVEL_PACKAGE:
	case LEVEL_DIE:
	case LEVEL_NUMA:
		return level;
	case LEVEL_L3:
		return COVER_WITHIN_L3;
	case LEVEL_L2:
		return COVER_WITHIN_L2;
	default:
		return LEVEL_NODE;
	}
}

int score_tree_init(struct score_tree *t, const struct shape *shape, const uint64_t *free_cores,
		    const struct score_need *need, enum level level, struct score_arena *arena)
{
	struct score_task task = score_task_of(need);
	struct growth g = { .tree = t };

	*t = (struct score_tree){
		.shape = shape, .free_cores = free_cores, .task_cores = need->task_cores ? need->task_cores : 1,
		.task = task, .cuts = task.core_cpus % task.cpus,
		.wanted = cover_wanted(level), .parts = score_arena_get(arena, shape->ndomains * sizeof(*t->parts)),
	};
	g.sprouts = score_arena_get(arena, shape->ndomains * sizeof(*g.sprouts));
	g.before = score_count_before(free_cores, shape->cores, arena);
	if (!t->parts || !g.sprouts || !g.before)
		return -1;
	t->have = g.before[shape->cores];
	/* Counts have 16 bits. */
	t->cuts &= (uint64_t) shape->cores * score_pieces(t, 1) <= SCORE_MAX_CORES;
	levels_inside(&g);
	tree_grow(&g);
	parts_link(t);
	return score_kinds_set(t, arena);
}

static unsigned limit_of(const struct score_need *need, const struct score_part *part)
{
	for (unsigned i = 0; part->kids && i < need->nlimits; i++)
		if (need->limits[i].first == part->first && need->limits[i].cores == part->cores)
			return need->limits[i].most;
	return UINT_MAX;
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
		unsigned most = limit_of(need, part);

		part->can = part->can < most ? part->can : most;
		t->limited |= part->can < part->have;
		if (part->parent >= 0)
			t->parts[part->parent].can += part->can;
	}
}
