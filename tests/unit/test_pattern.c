/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <time.h>

#include "made.h"
#include "map/engine/solve.h"
#include "map/matrix/draw.h"
#include "map/matrix/pattern.h"

/* What is true, by the definition: pairs of coordinates, with no code of lib/map/matrix/pattern.c. */
struct truth {
	const char *kind;		/* star, box (with diagonals), lines, binary, binomial, all */
	unsigned side[4];		/* the last are 0 where there are fewer */
	unsigned periodic;		/* bit by side */
	double weight[4];		/* along each side */
	const char *order;		/* NULL: row by row; morton, blocks of 2; shuffled */
	double jitter;			/* of the recording: the greatest change of a weight, as a share of it */
};

static unsigned ranks_of(const struct truth *t)
{
	unsigned n = 1;

	for (unsigned d = 0; d < 4 && t->side[d]; d++)
		n *= t->side[d];
	return n;
}

/* The number of a rank at these coordinates. */
static unsigned number_of(const struct truth *t, const unsigned *at)
{
	bool blocks = t->order && !strcmp(t->order, "blocks");
	unsigned number = 0, stride = 1;

	if (t->order && !strcmp(t->order, "morton")) {
		for (unsigned bit = 1, to = 1; bit < 1024; bit *= 2)
			for (unsigned d = 0; d < 4 && t->side[d]; d++)
				if (bit < t->side[d]) {
					number += at[d] & bit ? to : 0;
					to *= 2;
				}
		return number;
	}
	for (unsigned d = 0; blocks && d < 4 && t->side[d]; d++, stride *= 2)
		number += at[d] % 2 * stride;
	for (unsigned d = 0; d < 4 && t->side[d]; stride *= t->side[d++] / (blocks ? 2 : 1))
		number += at[d] / (blocks ? 2 : 1) * stride;
	return number;
}

static double grid_bytes(const struct truth *t, const unsigned *a, const unsigned *b)
{
	unsigned moved = 0, last = 0;
	double product = 1, bytes = 0;
	bool far = false;

	for (unsigned d = 0; d < 4 && t->side[d]; d++)
		if (a[d] != b[d]) {
			moved++;
			far |= abs((int) a[d] - (int) b[d]) > 1 && abs((int) a[d] - (int) b[d]) + 1u != t->side[d];
			last = d;
			product *= t->weight[d] / 10;
		}
	if (!strcmp(t->kind, "all"))
		return t->weight[0];
	if (!strcmp(t->kind, "lines"))
		return moved == 1 ? t->weight[last] / t->side[last] : 0;
	if (far || (moved > 1 && strcmp(t->kind, "box")))
		return 0;
	/* Each way of a step along each side, so that two of a periodic side of 2 count twice. */
	for (unsigned way = 0; way < 81; way++) {
		unsigned digits = way, hits = 0, sides = 0;

		for (unsigned d = 0; d < 4 && t->side[d]; d++, digits /= 3, sides++) {
			int to = (int) a[d] + (int) (digits % 3) - 1, side = t->side[d];

			if (t->periodic >> d & 1)
				to = (to + side) % side;
			hits += to == (int) b[d];
		}
		bytes += hits == sides && !digits ? moved == 1 ? t->weight[last] : product : 0;
	}
	return bytes;
}

static double tree_bytes(const struct truth *t, unsigned a, unsigned b)
{
	unsigned low = a < b ? a : b, high = a < b ? b : a;

	if (!strcmp(t->kind, "binary"))
		return high == 2 * low + 1 || high == 2 * low + 2 ? t->weight[0] : 0;
	/* The parent lacks the last bit of the child. */
	return high - low == (high & -high) && (low & (high - low)) == 0 ? t->weight[0] : 0;
}

static struct matrix *true_matrix(const struct truth *t, uint64_t seed)
{
	bool tree = !strncmp(t->kind, "bin", 3), shuffled = t->order && !strcmp(t->order, "shuffled");
	unsigned ranks = ranks_of(t), *number = malloc(ranks * sizeof(*number));
	unsigned (*at)[4] = calloc(ranks, sizeof(*at));
	struct matrix_entries found = {0};
	struct matrix *m;

	assert_non_null(number);
	assert_non_null(at);
	for (unsigned r = 0; r < ranks; r++) {
		unsigned rest = r;

		for (unsigned d = 0; d < 4 && t->side[d]; rest /= t->side[d++])
			at[r][d] = rest % t->side[d];
		number[r] = tree ? r : number_of(t, at[r]);
	}
	for (unsigned r = ranks; shuffled && r-- > 1;) {
		unsigned other = draw_below(&seed, r + 1), was = number[r];

		number[r] = number[other];
		number[other] = was;
	}
	for (unsigned a = 0; a < ranks; a++)
		for (unsigned b = a + 1; b < ranks; b++) {
			double bytes = tree ? tree_bytes(t, a, b) : grid_bytes(t, at[a], at[b]);

			if (bytes > 0)
				bytes *= 1 + t->jitter * (2 * draw_unit(&seed) - 1);
			assert_ok(matrix_entries_add(&found, number[a], number[b], bytes));
		}
	m = matrix_build(ranks, &found);
	assert_non_null(m);
	free(found.entry);
	free(number);
	free(at);
	return m;
}

/* What a mapping by m costs, judged by the true matrix; nodes have two packages of two NUMA nodes of four cores. */
static double cost_of(const struct matrix *m, const struct matrix *judge)
{
	OWNED(places_free) struct places *p = places_of((m->ranks + 15) / 16, "Package:2 NUMANode:2 Core:4", NULL);
	FREED(mapping_free) struct mapping out;

	assert_ok(mapping_solve(m, p, EFFORT_FAST, 1, &out, &err));
	return mapping_cost(judge, p, out.place);
}

TEST(writes_what_it_recognises_for_other_numbers)
{
	static const struct {
		struct truth small;
		unsigned side[4];	/* as MPI_Dims_create makes them of the other number */
		const char *text;
	} rows[] = {
		{ {"star", {64}, 1, {5}, NULL, 0}, {512}, "ring" },
		{ {"star", {64}, 0, {5}, NULL, 0}, {512}, "chain" },
		{ {"star", {48}, 1, {5}, NULL, .05}, {96}, "ring" },
		{ {"star", {8, 8}, 0, {5, 5}, NULL, 0}, {16, 32}, "2-dimensional stencil 8x8" },
		{ {"star", {8, 8}, 3, {5, 5}, NULL, 0}, {16, 32}, "2-dimensional stencil 8x8, periodic" },
		{ {"star", {8, 8}, 3, {9, 2}, NULL, .05}, {16, 32}, "2-dimensional stencil 8x8, periodic" },
		{ {"star", {6, 8}, 1, {7, 4}, NULL, 0}, {8, 12}, "2-dimensional stencil 6x8, periodic in part" },
		{ {"star", {8, 6}, 2, {7, 4}, NULL, 0}, {12, 8}, "2-dimensional stencil 8x6, periodic in part" },
		{ {"star", {8, 4}, 0, {1, 6}, NULL, 0}, {32, 16}, "2-dimensional stencil 8x4" },
		{ {"box", {8, 8}, 0, {5, 5}, NULL, 0}, {16, 32}, "2-dimensional stencil 8x8" },
		{ {"box", {8, 8}, 3, {5, 3}, NULL, .05}, {16, 32}, "2-dimensional stencil 8x8, periodic" },
		{ {"star", {4, 4, 4}, 0, {5, 5, 5}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 4x4x4" },
		{ {"star", {4, 4, 4}, 7, {5, 5, 5}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 4x4x4, periodic" },
		{ {"star", {4, 4, 4}, 7, {9, 5, 1}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 4x4x4, periodic" },
		{ {"star", {4, 4, 4}, 0, {5, 5, 5}, NULL, .05}, {8, 8, 8}, "3-dimensional stencil 4x4x4" },
		{ {"star", {3, 4, 4}, 0, {3, 4, 5}, NULL, 0}, {4, 4, 6}, "3-dimensional stencil 3x4x4" },
		{ {"star", {2, 3, 4}, 7, {3, 4, 5}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 2x3x4, periodic" },
		{ {"box", {4, 4, 4}, 0, {5, 5, 5}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 4x4x4" },
		{ {"box", {4, 4, 4}, 7, {5, 4, 3}, NULL, .05}, {8, 8, 8}, "3-dimensional stencil 4x4x4, periodic" },
		{ {"box", {3, 3, 3}, 0, {5, 5, 5}, NULL, 0}, {8, 8, 8}, "3-dimensional stencil 3x3x3" },
		{ {"star", {2, 2, 4, 4}, 0, {2, 3, 4, 5}, NULL, 0}, {4, 4, 4, 8}, "4-dimensional stencil 2x2x4x4" },
		{ {"star", {2, 2, 4, 4}, 15, {2, 3, 4, 5}, NULL, 0}, {4, 4, 4, 8},
		  "4-dimensional stencil 2x2x4x4, periodic" },
		{ {"box", {4, 4, 2, 2}, 0, {2, 3, 4, 5}, NULL, 0}, {8, 4, 4, 4}, "4-dimensional stencil 4x4x2x2" },
		{ {"lines", {8, 8}, 0, {5, 5}, NULL, 0}, {16, 32}, "pencils 8x8" },
		{ {"lines", {6, 8}, 0, {7, 2}, NULL, .05}, {8, 12}, "pencils 6x8" },
		{ {"lines", {4, 4, 4}, 0, {5, 3, 1}, NULL, 0}, {8, 8, 8}, "pencils 4x4x4" },
		{ {"all", {64}, 0, {3}, NULL, 0}, {512}, "all-to-all" },
		{ {"binary", {64}, 0, {3}, NULL, 0}, {512}, "binary tree" },
		{ {"binary", {63}, 0, {3}, NULL, .05}, {511}, "binary tree" },
		{ {"binomial", {64}, 0, {3}, NULL, 0}, {512}, "binomial tree" },
		{ {"star", {8, 8}, 0, {5, 5}, "morton", 0}, {16, 16},
		  "2-dimensional stencil 8x8, ranks in Morton order" },
		{ {"star", {8, 8}, 3, {5, 7}, "blocks", 0}, {16, 32},
		  "2-dimensional stencil 8x8, periodic, ranks in blocks of 2x2" },
		{ {"star", {6, 6, 6}, 0, {5, 5, 5}, "blocks", 0}, {8, 8, 8},
		  "3-dimensional stencil 6x6x6, ranks in blocks of 2x2x2" },
		{ {"lines", {8, 8}, 0, {5, 5}, "morton", 0}, {16, 16}, "pencils 8x8, ranks in Morton order" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *small = true_matrix(&rows[i].small, 1);
		struct pattern p, grown;
		char text[PATTERN_TEXT];
		struct truth large = rows[i].small;
		double by_pattern, by_truth;

		memcpy(large.side, rows[i].side, sizeof(large.side));
		large.jitter = 0;
		assert_ok(pattern_recognise(small, &p, &err));
		pattern_describe(&p, text);
		assert_string_equal(text, rows[i].text);
		assert_ok(pattern_resize(&p, ranks_of(&large), &grown, &err));

		OWNED(matrix_free) struct matrix *truth = true_matrix(&large, 2), *made = pattern_matrix(&grown);

		assert_non_null(made);
		/* The same matrix has the same map. */
		if (matrix_distance(made, truth) < 1e-9)
			continue;
		by_pattern = cost_of(made, truth);
		by_truth = cost_of(truth, truth);
		if (by_pattern > 1.01 * by_truth)
			fail_msg("%s: costs %g, the true matrix %g", text, by_pattern, by_truth);
	}
}

/* Its name, but nothing is known of another number. */
TEST(recognises_ranks_in_no_order)
{
	static const struct {
		struct truth small;
		const char *text;
	} rows[] = {
		{ {"star", {64}, 1, {5}, "shuffled", 0}, "ring" }, { {"star", {40}, 0, {5}, "shuffled", .05}, "chain" },
		{ {"star", {8, 8}, 0, {5, 5}, "shuffled", 0}, "2-dimensional stencil 8x8" },
		{ {"star", {8, 6}, 3, {5, 2}, "shuffled", .05}, "2-dimensional stencil 8x6, periodic" },
		{ {"box", {16, 4}, 0, {5, 5}, "shuffled", 0}, "2-dimensional stencil 16x4" },
		{ {"star", {4, 4, 4}, 0, {5, 5, 5}, "shuffled", .05}, "3-dimensional stencil 4x4x4" },
		{ {"star", {4, 4, 4}, 7, {9, 5, 2}, "shuffled", 0}, "3-dimensional stencil 4x4x4, periodic" },
		{ {"star", {5, 5, 5}, 7, {5, 5, 5}, "shuffled", 0}, "3-dimensional stencil 5x5x5, periodic" },
		{ {"box", {5, 4, 4}, 0, {5, 5, 5}, "shuffled", 0}, "3-dimensional stencil 5x4x4" },
		{ {"star", {6, 6, 6}, 0, {5, 5, 5}, "shuffled", 0}, "3-dimensional stencil 6x6x6" },
		{ {"star", {4, 4, 2, 2}, 0, {5, 5, 5, 5}, "shuffled", 0}, "4-dimensional stencil 4x4x2x2" },
		{ {"lines", {8, 8}, 0, {5, 5}, "shuffled", .05}, "pencils 8x8" },
		{ {"lines", {12, 4}, 0, {5, 2}, "shuffled", 0}, "pencils 12x4" },
		{ {"star", {12, 8, 8}, 0, {5, 5, 5}, "shuffled", 0}, "3-dimensional stencil 12x8x8" },
		{ {"star", {8, 8, 8}, 7, {5, 5, 5}, "shuffled", 0}, "3-dimensional stencil 8x8x8, periodic" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = true_matrix(&rows[i].small, 1);
		char text[PATTERN_TEXT], want[PATTERN_TEXT];
		struct err e = {""};
		struct pattern p;

		assert_ok(pattern_recognise(m, &p, &err));
		pattern_describe(&p, text);
		snprintf(want, sizeof(want), "%s, ranks in no regular order", rows[i].text);
		assert_string_equal(text, want);
		assert_int_equal(pattern_resize(&p, 2 * m->ranks, &p, &e), -1);
		assert_non_null(strstr(e.text, "in an order"));
	}
}

/* A matrix of pairs that a function draws. */
typedef double pair_fn(unsigned a, unsigned b, uint64_t *seed);

static struct matrix *matrix_drawn(unsigned ranks, pair_fn *bytes)
{
	struct matrix_entries found = {0};
	uint64_t seed = 1;
	struct matrix *m;

	for (unsigned a = 0; a < ranks; a++)
		for (unsigned b = a + 1; b < ranks; b++)
			assert_ok(matrix_entries_add(&found, a, b, bytes(a, b, &seed)));
	m = matrix_build(ranks, &found);
	assert_non_null(m);
	free(found.entry);
	return m;
}

static double in_grid(unsigned a, unsigned b)
{
	return b - a == 8 || (b - a == 1 && b % 8) ? 10 : 0;
}

static double sparse(unsigned a, unsigned b, uint64_t *seed)
{
	(void) a, (void) b;
	return draw_below(seed, 256) < 16 ? 1 + draw_below(seed, 1024) : 0;
}

static double dense(unsigned a, unsigned b, uint64_t *seed)
{
	(void) a, (void) b;
	return 1 + draw_below(seed, 1024);
}

static double master(unsigned a, unsigned b, uint64_t *seed)
{
	(void) b, (void) seed;
	return a == 0;
}

static double far(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return b - a == 32;
}

static double ternary(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return (b - 1) / 3 == a;
}

/* A ring of which each rank exchanges with the fifth, too. */
static double circulant(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return b - a == 1 || b - a == 63 || b - a == 5 || b - a == 59;
}

/* Of a torus whose rows end in the next one. */
static double helix(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return b - a == 1 || b - a == 63 || b - a == 8 || b - a == 56;
}

static double noisy_grid(unsigned a, unsigned b, uint64_t *seed)
{
	return in_grid(a, b) * draw_unit(seed);
}

static double grid_that_grows(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return in_grid(a, b) * (1 + a / 8);
}

static double grid_with_holes(unsigned a, unsigned b, uint64_t *seed)
{
	return draw_below(seed, 5) ? in_grid(a, b) : 0;
}

static double grid_and_all(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return in_grid(a, b) + 0.2;
}

TEST(takes_nothing_for_a_pattern)
{
	static const struct {
		unsigned ranks;
		pair_fn *bytes;
	} rows[] = {
		{ 64, sparse }, { 64, dense }, { 64, master }, { 64, far }, { 64, ternary }, { 64, circulant },
		{ 64, helix }, { 64, noisy_grid }, { 64, grid_that_grows }, { 64, grid_with_holes },
		{ 64, grid_and_all }, { 62, grid_with_holes },
		{ 256, sparse }, { 4, master }, { 12, sparse }, { 16, sparse },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_drawn(rows[i].ranks, rows[i].bytes);
		char text[PATTERN_TEXT];
		struct pattern p;

		if (pattern_recognise(m, &p, &err))
			continue;
		pattern_describe(&p, text);
		fail_msg("row %zu: %s, distance %g", i, text, p.distance);
	}
}

/* Recursive doubling exchanges along the sides of a grid whose sides are all 2. */
static double grid_and_collectives(unsigned a, unsigned b, uint64_t *seed)
{
	(void) seed;
	return in_grid(a, b) + ((a ^ b) & ((a ^ b) - 1) ? 0 : 0.1);
}

TEST(takes_collectives_for_no_sides)
{
	static const unsigned ranks[] = { 32, 48, 64, 128 };

	for (size_t i = 0; i < ROWS(ranks); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_drawn(ranks[i], grid_and_collectives);
		char text[PATTERN_TEXT], want[PATTERN_TEXT];
		struct pattern p;

		assert_ok(pattern_recognise(m, &p, &err));
		pattern_describe(&p, text);
		snprintf(want, sizeof(want), "2-dimensional stencil 8x%u", ranks[i] / 8);
		assert_string_equal(text, want);
	}
}

TEST(says_why_another_number_is_not_known)
{
	static const struct {
		struct truth small;
		unsigned ranks;
		const char *words;
	} rows[] = {
		{ {"star", {16, 4}, 0, {5, 5}, NULL, 0}, 512, "16x4 is not that of MPI_Dims_create" },
		{ {"star", {8, 8}, 0, {5, 5}, NULL, 0}, 72, "different grids of 72 ranks" },
		{ {"star", {4, 4, 4}, 0, {5, 5, 5}, "morton", 0}, 512, "4x4x4 does not show how its order" },
		{ {"star", {8, 8}, 0, {5, 5}, "morton", 0}, 144, "powers of two" },
		{ {"star", {8, 8}, 0, {5, 5}, "blocks", 0}, 225, "blocks of its ranks" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = true_matrix(&rows[i].small, 1);
		struct err e = {""};
		struct pattern p;

		assert_ok(pattern_recognise(m, &p, &err));
		if (!pattern_resize(&p, rows[i].ranks, &p, &e) || !strstr(e.text, rows[i].words))
			fail_msg("%s: %s", rows[i].words, e.text);
	}
}

/* Likely in each grid, right in none. */
static double noisy_chain(unsigned a, unsigned b, uint64_t *seed)
{
	return b - a == 1 ? draw_unit(seed) : 0;
}

/* In a second of CPU time at most, whatever the matrix is; and what is a pattern is recognised. */
TEST(ends_in_time)
{
	static const struct {
		unsigned ranks;
		pair_fn *bytes;
		struct pattern large;
	} rows[] = {
		{ 4096, sparse, {0} }, { 3600, dense, {0} }, { 3600, noisy_chain, {0} }, { 4096, circulant, {0} },
		{ 4096, NULL, { .sides = 3, .side = { 16, 16, 16 } } },
		{ 4096, NULL, { .sides = 4, .side = { 8, 8, 8, 8 }, .periodic = { 1, 1, 1, 1 } } },
		{ 4096, NULL, { PATTERN_LINES, .sides = 2, .side = { 64, 64 } } },
		{ 2048, NULL, { PATTERN_LINES, .sides = 1, .side = { 2048 } } },
		{ 4096, NULL, { .order = PATTERN_MORTON, .sides = 2, .side = { 64, 64 }, .periodic = { 1, 1 } } },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct pattern p = rows[i].large;
		OWNED(matrix_free) struct matrix *m = NULL;
		clock_t began;

		p.ranks = rows[i].ranks;
		for (unsigned t = 0; t < PATTERN_STEPS; t++)
			p.weight[t] = 5;
		m = rows[i].bytes ? matrix_drawn(rows[i].ranks, rows[i].bytes) : pattern_matrix(&p);
		assert_non_null(m);
		began = clock();
		assert_int_equal(pattern_recognise(m, &p, NULL), rows[i].bytes ? -1 : 0);
		assert_true(clock() - began <= CLOCKS_PER_SEC);
		if (!rows[i].bytes)
			assert_memory_equal(p.side, rows[i].large.side, rows[i].large.sides * sizeof(*p.side));
	}
}

TESTS_MAIN(NULL, NULL)
