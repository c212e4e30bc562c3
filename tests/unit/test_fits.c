/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../select_plugin/fits.h"
#include "table.h"

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
	const struct score_cost *told = fits_cost(shape, &cores, need);
	uint64_t chosen = 0, expected = 0;
	struct score_cost cost;
	int rc = score_pick(shape, &cores, need, &expected, &cost);

	assert_int_equal(told != NULL, rc == 0);
	if (told)
		assert_int_equal(score_compare(told, &cost), 0);
	assert_int_equal(fits_pick(shape, &cores, need, &chosen), rc == 0);
	assert_int_equal(chosen, expected);
}

/* The largest number of cores that fits, as found one by one. */
static void check_most(const struct shape *shape, uint64_t cores, enum level level)
{
	struct score_need need = { .task_cores = 1, .fit = FIT_REQUIRE, .level = level };
	const struct score_cost *cost = NULL, *most = NULL;
	unsigned n = 0;

	for (need.cores = 1; (cost = fits_cost(shape, &cores, &need)); need.cores++) {
		most = cost;
		n = need.cores;
	}
	assert_int_equal(fits_most(shape, &cores, &need, &cost), n);
	assert_ptr_equal(cost, most);
}

/*
 * What is remembered is what would be worked out, whatever was asked before: of other needs, other cores, other shapes.
 */
static void remembers_what_is_so(void **state)
{
	struct shape *shapes[] = { shape_parse("Package:2 L3Cache:2 Core:4 PU:1", NULL), shape_parse("Package:4 Core:4 PU:2", NULL) };
	unsigned seed = 7;

	(void) state;
	fits_begin(1);
	fits_allow(UINT_MAX);
	for (int i = 0; i < 40000; i++) {
		uint64_t cores = rand_r(&seed) & rand_r(&seed) & (i % 3 ? 0xffff : 0x0ff0);

		check(shapes[i % 2], cores, &needs[rand_r(&seed) % ROWS(needs)]);
		if (i % 10 == 0)
			check_most(shapes[i % 2], cores, i % 20 ? LEVEL_L3 : LEVEL_PACKAGE);
	}
	for (size_t i = 0; i < ROWS(shapes); i++)
		shape_free(shapes[i]);
	fits_forget();
}

/* A shape of another view may stand where an old one stood. */
static void forgets_with_the_view(void **state)
{
	struct shape *shape = shape_parse("Package:2 L3Cache:2 Core:4 PU:1", NULL),
		     *one = shape_parse("Core:16 PU:1", NULL);
	struct shape other = *shape;
	uint64_t cores = 0xffff;

	(void) state;
	fits_begin(1);
	fits_allow(UINT_MAX);
	check(&other, cores, &needs[2]);
	fits_begin(2);
	other = *one;
	check(&other, cores, &needs[2]);
	fits_forget();
	shape_free(shape);
	shape_free(one);
}

/* Bounded: a million different sets of cores of a large node are not all kept at once. */
static void does_not_grow_for_ever(void **state)
{
	struct shape *shape = shape_parse("Package:2 L3Cache:8 Core:8 PU:1", NULL);
	struct score_need need = { .cores = 8, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	uint64_t cores[2] = { 0xff00, 0 };
	size_t most = 0, before = 0;
	bool forgot = false;

	(void) state;
	fits_allow(UINT_MAX);
	for (unsigned i = 0; i < 60000 && !forgot; i++) {
		fits_begin(3);
		forgot = fits_bytes() < before;
		cores[1] = 0x9e3779b97f4a7c15u * (i + 1);
		assert_non_null(fits_cost(shape, cores, &need));
		before = fits_bytes();
		most = before > most ? before : most;
	}
	assert_true(forgot);
	assert_in_range(most, 1 << 20, 128 << 20);
	fits_forget();
	assert_int_equal(fits_bytes(), 0);
	shape_free(shape);
}

/* What is used in each decision stays, however much else is asked meanwhile; what is not allowed is not scored. */
static void keeps_what_is_used(void **state)
{
	struct shape *shape = shape_parse("Package:2 L3Cache:8 Core:8 PU:1", NULL);
	struct score_need need = { .cores = 8, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	uint64_t used[2] = { 0xff, 0xff }, cores[2] = { 0xff00, 0 };
	unsigned turned = 0;
	size_t before = 0;

	(void) state;
	fits_begin(4);
	fits_allow(1);
	assert_non_null(fits_cost(shape, used, &need));
	assert_null(fits_cost(shape, cores, &need));
	assert_true(fits_refused());
	for (unsigned i = 0; i < 200000 && turned < 3; i++) {
		fits_begin(4);
		turned += fits_bytes() < before;
		fits_allow(0);
		assert_non_null(fits_cost(shape, used, &need));
		assert_false(fits_refused());
		fits_allow(1);
		cores[1] = 0x9e3779b97f4a7c15u * (i + 1);
		assert_non_null(fits_cost(shape, cores, &need));
		before = fits_bytes();
	}
	assert_int_equal(turned, 3);
	fits_forget();
	shape_free(shape);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remembers_what_is_so),
		cmocka_unit_test(forgets_with_the_view),
		cmocka_unit_test(does_not_grow_for_ever),
		cmocka_unit_test(keeps_what_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
