/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "score/score.h"

/* Memory of one call, freed at once. Initialise with {0}. */
struct score_arena {
	struct score_block *blocks;
	char *at;
	size_t room;
};

/* Not cleared, aligned for any count or pointer; NULL when memory is short. */
void *score_arena_get(struct score_arena *a, size_t bytes);
void score_arena_free(struct score_arena *a);

/* The position of a count in a cost, 0 being the most significant; -1 for what is not counted. Rows of SCORE_ROWS. */
extern const signed char score_field[SCORE_ROWS][LEVEL_CORE];

/* Adds to a count. Counts never exceed SCORE_MAX_CORES, so none overflows into the next. */
static inline void cost_count(struct score_cost *c, enum score_row row, enum level level, uint64_t n)
{
	int field = score_field[row][level];

	c->word[field / 4] += n << (48 - field % 4 * 16);
}

/* Sets a count to n. */
void cost_set(struct score_cost *c, enum score_row row, enum level level, unsigned n);

static inline void cost_add(struct score_cost *sum, const struct score_cost *c)
{
	for (int w = 0; w < SCORE_WORDS; w++)
		sum->word[w] += c->word[w];
}

static inline struct score_cost cost_sum(const struct score_cost *a, const struct score_cost *b)
{
	struct score_cost sum = *a;

	cost_add(&sum, b);
	return sum;
}

static inline void cost_add_times(struct score_cost *sum, const struct score_cost *c, uint64_t n)
{
	for (int w = 0; w < SCORE_WORDS; w++)
		sum->word[w] += c->word[w] * n;
}

/*
 * Whether the sum of a and b is less than a third. Usually not, by the first two words: these are compared as one
 * number.
 */
static inline bool cost_sum_is_less(const struct score_cost *a, const struct score_cost *b,
				    const struct score_cost *than)
{
	unsigned __int128 sum = (unsigned __int128) (a->word[0] + b->word[0]) << 64 | (a->word[1] + b->word[1]);
	unsigned __int128 most = (unsigned __int128) than->word[0] << 64 | than->word[1];

	if (__builtin_expect(sum > most, 1))
		return false;
	if (sum < most)
		return true;
	for (int w = 2; w < SCORE_WORDS; w++)
		if (a->word[w] + b->word[w] != than->word[w])
			return a->word[w] + b->word[w] < than->word[w];
	return false;
}

/*
 * A shape with its free cores, in the form over which costs are counted: only the parts with free cores.
 *
 * For each level the counted domains are a cover: every core is in exactly one of them, so that counts of parts add up.
 * A cover consists of the shape's domains of the level and, where it has none, of the substitutes described in score.h.
 * Covers are named by their level; COVER_WITHIN_* are those of "beyond", where a missing cache counts as the level
 * above.
 */
enum { COVER_WITHIN_L3 = LEVEL_COUNT, COVER_WITHIN_L2, COVER_COUNT };

#define BIT(cover) (1u << (cover))

/* The costs of parts of the same covers, without what is in them. */
struct score_kind {
	struct score_kind *next;
	unsigned counts;
	struct score_cost all;		/* when all of it is allocated */
	struct score_cost some;		/* when a part of it is, */
	struct score_cost intact;	/* of a domain that was entirely free */
	struct score_cost left;		/* additional for each core left over */
	struct score_cost piece;	/* additional for each piece of a task */
};

struct score_part {
	unsigned first, cores;	/* of a domain; of a run, from its first free core to its last */
	unsigned have;		/* of these, free */
	unsigned can;		/* of these, as many as the limits allow */
	unsigned kids;		/* parts directly below; 0: a run of single cores */
	unsigned next;		/* index of the part after this one and its contents */
	int parent;		/* -1 for the node */
	unsigned counts;	/* BIT of each cover that it belongs to; for a run, of each that its cores do */
	unsigned within;	/* and of each cover that it or a part around it belongs to */
	const struct score_kind *kind;
};

struct score_tree {
	const struct shape *shape;
	const uint64_t *free_cores;
	unsigned task_cores;	/* for tasks that spread: whole ones */
	struct score_task task;
	bool cuts;		/* tasks can be cut: a core does not hold a whole number of them */
	unsigned have;		/* free cores */
	bool limited;		/* some part has fewer that it can choose than free ones */
	unsigned wanted;	/* the cover that "beyond" counts; LEVEL_NODE: none */
	unsigned levels;	/* BIT of each level of the shape */
	struct score_part *parts;	/* in preorder; the node is the first, unless nothing is free */
	unsigned nparts;
	struct score_kind *kinds;	/* of the parts, each once */
};

/*
 * Allocated in the arena, which the caller frees in either case; borrows shape and free_cores. 0, or -1 when memory is
 * short.
 */
int score_tree_init(struct score_tree *t, const struct shape *shape, const uint64_t *free_cores,
		    const struct score_need *need, enum level level, struct score_arena *arena);

/* The least number of tasks to which so many cores, at least one, can belong. */
static inline unsigned score_pieces(const struct score_tree *t, unsigned cores)
{
	return ((uint64_t) cores * t->task.core_cpus - 1) / t->task.cpus + 1;
}

/* Sets what each part can choose within the limits of the need; without this call, all that is free. */
void score_tree_limit(struct score_tree *t, const struct score_need *need);

/*
 * before[c]: how many of the cores below c are in the set, for c up to the number of cores. NULL when memory is short.
 */
uint16_t *score_count_before(const uint64_t *set, unsigned cores, struct score_arena *arena);

/* The cost of a domain itself, when some of its cores are chosen and `left` count as left over. */
static inline void score_domain_add(const struct score_tree *t, const struct score_part *part, unsigned taken,
				    unsigned left, struct score_cost *sum)
{
	const struct score_kind *kind = part->kind;

	if (!taken)
		return;
	cost_add(sum, taken == part->cores ? &kind->all : part->have < part->cores ? &kind->some : &kind->intact);
	if (left)
		cost_add_times(sum, &kind->left, left);
	if (t->cuts)
		cost_add_times(sum, &kind->piece, score_pieces(t, taken));
}

/* The cost of so many cores of a run: each is the only core of its domains. */
static inline void score_run_add(const struct score_tree *t, const struct score_part *part, unsigned taken,
				 struct score_cost *sum)
{
	cost_add_times(sum, &part->kind->all, taken);
	if (t->cuts)
		cost_add_times(sum, &part->kind->piece, taken * score_pieces(t, 1));
}

/* Converts the sum over all parts to the cost of k cores. */
void score_finish(const struct score_tree *t, unsigned k, struct score_cost *cost);

/*
 * The least costs of choosing from a part, for every number that it can provide. Costs of parts add up and compare as
 * their sums do, so the optimum of two parts together is an optimal sum: each part can be examined by itself.
 *
 * Choices follow steps, outermost first: `count` domains of a cover, and in each of them the next step; the last step
 * chooses single cores. A job without a path has that step only.
 */
struct score_step {
	unsigned cover;
	unsigned count;
	unsigned cores;		/* of each one that is chosen */
};

struct score_plan {
	unsigned have;			/* how many there are */
	unsigned least, most;		/* how many may be chosen */
	struct score_cost *cost;	/* for least .. most */
	unsigned run;			/* its choice: cores of this part, */
	const struct score_plan *first, *second;	/* or of one plan and another, */
	unsigned each;			/* or, without a second, this many of the first for each */
};

/* Plans the choice of `steps` within one part. In the arena; NULL when memory is short. */
const struct score_plan *score_plan_make(const struct score_tree *t, unsigned part, const struct score_step *steps,
					 struct score_arena *arena);

/* The cost of n, without score_finish; NULL when they are not available. */
const struct score_cost *score_plan_cost(const struct score_plan *plan, unsigned n);

/* Sets the bits of the best n; among equal costs, as many as possible in the first half of the parts. */
void score_plan_mark(const struct score_tree *t, const struct score_plan *plan, unsigned n, uint64_t *chosen);
