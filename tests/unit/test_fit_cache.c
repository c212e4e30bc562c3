/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/fit_cache.h"
#include "table.h"

OWNS(struct shape *, shape_free)

static struct fit_cache cache;
static struct fit_memo memos[61];

static const struct request_path path = { .steps = 2, .step = { { LEVEL_L3, 2 }, { LEVEL_CORE, 2 } } };

static const struct score_need needs[] = {
	{ .cores = 4, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE },
	{ .cores = 4, .task_cores = 2, .fit = FIT_PREFER, .level = LEVEL_NODE },
	{ .cores = 6, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_L3 },
	{ .cores = 6, .task_cores = 1, .fit = FIT_REQUIRE, .level = LEVEL_L3 },
	{ .cores = 6, .task_cores = 1, .fit = FIT_REQUIRE, .level = LEVEL_PACKAGE },
	{ .cores = 4, .task_cores = 1, .fit = FIT_REQUIRE, .level = LEVEL_NODE, .path = &path },
	{ .cores = 5, .task_cores = 1, .fit = FIT_REQUIRE, .level = LEVEL_NODE, .path = &path },
	{ .cores = 4, .task_cores = 1, .fit = FIT_SPREAD, .level = LEVEL_L3 },
	{ .cores = 4, .task_cores = 2, .fit = FIT_SPREAD, .level = LEVEL_NODE },
};

static void check(const struct shape *shape, uint64_t cores, const struct score_need *need)
{
	struct node_fit *fit = NULL;
	const struct score_cost *told = fit_cost_on(&cache, shape, &cores, need, &memos[cores % ROWS(memos)], &fit);
	uint64_t expected = 0;
	struct score_cost cost;
	int rc = score_pick(shape, &cores, need, &expected, &cost);

	assert_int_equal(told != NULL, rc == 0);
	if (told)
		assert_int_equal(score_compare(told, &cost), 0);
	assert_int_equal(fit != NULL, rc == 0);
	if (fit)
		assert_int_equal(*fit_cores(&cache, fit, need->cores), expected);
}

/* The largest number of cores that fits, as found one by one. */
static void check_most(const struct shape *shape, uint64_t cores, enum level level)
{
	struct score_need need = { .task_cores = 1, .fit = FIT_REQUIRE, .level = level };
	const struct score_cost *cost = NULL, *most = NULL;
	struct node_fit *fit = NULL;
	unsigned n = 0;

	for (need.cores = 1; (cost = fit_cost(&cache, shape, &cores, &need, &fit)); need.cores++) {
		most = cost;
		n = need.cores;
	}
	assert_int_equal(fit_most(&cache, shape, &cores, &need, &cost, &fit), n);
	assert_ptr_equal(cost, most);
}

/*
 * What is remembered is what would be worked out, whatever was asked before: of other needs, other cores, other shapes.
 */
TEST(returns_the_computed_cost)
{
	struct shape *shapes[] = { shape_parse("Package:2 L3Cache:2 Core:4 PU:1", NULL),
				   shape_parse("Package:4 Core:4 PU:2", NULL) };
	unsigned seed = 7;

	fit_cache_begin(&cache, 1);
	fit_cache_allow(&cache, UINT_MAX);
	for (int i = 0; i < 40000; i++) {
		uint64_t cores = rand_r(&seed) & rand_r(&seed) & (i % 3 ? 0xffff : 0x0ff0);

		if (i % 3 == 0)
			fit_cache_begin(&cache, 1);
		check(shapes[i % 2], cores, &needs[rand_r(&seed) % ROWS(needs)]);
		if (i % 10 == 0)
			check_most(shapes[i % 2], cores, i % 20 ? LEVEL_L3 : LEVEL_PACKAGE);
	}
	for (size_t i = 0; i < ROWS(shapes); i++)
		shape_free(shapes[i]);
	fit_cache_clear(&cache);
}

/* A shape of another view may stand where an old one stood. */
TEST(is_emptied_with_a_new_view)
{
	OWNED(shape_free) struct shape *shape = shape_parse("Package:2 L3Cache:2 Core:4 PU:1", NULL),
		*one = shape_parse("Core:16 PU:1", NULL);
	struct shape other = *shape;
	uint64_t cores = 0xffff;

	fit_cache_begin(&cache, 1);
	fit_cache_allow(&cache, UINT_MAX);
	check(&other, cores, &needs[2]);
	fit_cache_begin(&cache, 2);
	other = *one;
	check(&other, cores, &needs[2]);
	fit_cache_clear(&cache);
}

/* Bounded: a million different sets of cores of a large node are not all kept at once. */
TEST(size_is_bounded)
{
	OWNED(shape_free) struct shape *shape = shape_parse("Package:2 L3Cache:8 Core:8 PU:1", NULL);
	struct score_need need = { .cores = 8, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	uint64_t cores[2] = { 0xff00, 0 };
	size_t most = 0, before = 0;
	struct node_fit *fit;
	bool forgot = false;

	fit_cache_allow(&cache, UINT_MAX);
	for (unsigned i = 0; i < 60000 && !forgot; i++) {
		fit_cache_begin(&cache, 3);
		forgot = fit_cache_bytes(&cache) < before;
		cores[1] = 0x9e3779b97f4a7c15u * (i + 1);
		assert_non_null(fit_cost(&cache, shape, cores, &need, &fit));
		before = fit_cache_bytes(&cache);
		most = before > most ? before : most;
	}
	assert_true(forgot);
	assert_in_range(most, 1 << 20, 128 << 20);
	fit_cache_clear(&cache);
	assert_int_equal(fit_cache_bytes(&cache), 0);
}

/* What is used in each decision stays, however much else is asked meanwhile; what is not allowed is not scored. */
TEST(keeps_what_is_used)
{
	OWNED(shape_free) struct shape *shape = shape_parse("Package:2 L3Cache:8 Core:8 PU:1", NULL);
	struct score_need need = { .cores = 8, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	uint64_t used[2] = { 0xff, 0xff }, cores[2] = { 0xff00, 0 };
	unsigned turned = 0;
	struct fit_memo memo = {0};
	struct node_fit *fit;
	size_t before = 0;

	fit_cache_begin(&cache, 4);
	fit_cache_allow(&cache, 1);
	assert_non_null(fit_cost(&cache, shape, used, &need, &fit));
	assert_null(fit_cost(&cache, shape, cores, &need, &fit));
	assert_true(cache.refused);
	for (unsigned i = 0; i < 200000 && turned < 3; i++) {
		fit_cache_begin(&cache, 4);
		turned += fit_cache_bytes(&cache) < before;
		fit_cache_allow(&cache, 0);
		assert_non_null(fit_cost_on(&cache, shape, used, &need, &memo, &fit));
		assert_false(cache.refused);
		fit_cache_allow(&cache, 1);
		cores[1] = 0x9e3779b97f4a7c15u * (i + 1);
		assert_non_null(fit_cost(&cache, shape, cores, &need, &fit));
		before = fit_cache_bytes(&cache);
	}
	assert_int_equal(turned, 3);
	fit_cache_clear(&cache);
}

TEST(prefers_cores_of_one_kind)
{
	static const char hybrid[] = "Package:1 { Core:4(kind=1) PU:1 | Core:4 PU:1 }";
	static const struct {
		const char *shape;
		uint64_t free_cores;
		unsigned cores;
		uint64_t chosen;
		bool mixes;
	} rows[] = {
		{ hybrid, 0xff, 3, 0x07, false }, { hybrid, 0xff, 4, 0x0f, false }, { hybrid, 0xff, 5, 0x1f, true },
		{ hybrid, 0xfc, 3, 0x70, false }, { hybrid, 0x3c, 3, 0x1c, true }, { hybrid, 0x3c, 2, 0x0c, false },
		{ "Package:2 Core:4", 0xfc, 3, 0x70, false }, { "Package:1 Core:8", 0xfc, 3, 0x1c, false },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *s = shape_parse(rows[i].shape, NULL);
		struct score_need need = { .cores = rows[i].cores, .task_cores = 1, .fit = FIT_PREFER };
		struct fit_cache c = {0};
		struct node_fit *fit = NULL;
		const uint64_t *chosen;
		uint64_t scratch[1];
		bool mixes = false;

		fit_cache_begin(&c, 1);
		fit_cache_allow(&c, 100);
		assert_non_null(fit_cost_of_kind(&c, s, &rows[i].free_cores, &need, scratch, NULL, &fit, &mixes));
		chosen = fit_cores(&c, fit, need.cores);
		if (!chosen || *chosen != rows[i].chosen || mixes != rows[i].mixes)
			fail_msg("row %zu: %#lx, mixes %d", i, chosen ? (unsigned long) *chosen : 0ul, mixes);
		fit_cache_clear(&c);
	}
}

TESTS_MAIN(NULL, NULL)
