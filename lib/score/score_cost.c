/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_cost.h"

/*	  node  package  die  numa  l3  l2 */
const signed char score_field[SCORE_ROWS][LEVEL_CORE] = {
	[SCORE_BEYOND]	= {  0,  0,  0,  0,  0,  0 },
	[SCORE_CUTS]	= { -1, -1, -1,  1,  2, -1 },
	[SCORE_TOUCHED]	= { -1,  3,  4,  5,  6,  7 },
	[SCORE_OPEN]	= { -1,  8,  9, 10, 11, 12 },
	[SCORE_BROKEN]	= { -1, 13, 14, 15, 16, 17 },
	[SCORE_LEFT]	= { 23, 18, 19, 20, 21, 22 },
};

static int field_of(enum score_row row, enum level level)
{
	return row < SCORE_ROWS && level < LEVEL_CORE ? score_field[row][level] : -1;
}

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
	int field = field_of(row, level);

	return field < 0 ? 0 : field_get(c, field);
}

void cost_set(struct score_cost *c, enum score_row row, enum level level, unsigned n)
{
	cost_count(c, row, level, (uint64_t) n - score_count(c, row, level));
}
