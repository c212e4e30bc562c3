/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_COST_H
#define TOPIARY_SCORE_SCORE_COST_H

#include "score/score.h"

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

#endif
