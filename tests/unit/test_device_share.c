/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/device_choice.h"
#include "table.h"

static const char four[] = "Package:2 NUMANode:2 Core:4 PU:1";

/* The limits as text: "first+cores<=most ...". */
static const struct {
	const char *why;
	unsigned cores, task_cores;
	struct device_share shares[4];
	unsigned n;
	uint64_t busy;
	const char *limits;
} rows[] = {
	{ "one device each", 2, 1, { { 0, 8, 1 }, { 8, 8, 1 } }, 2, 0, "0+8<=1 8+8<=1 " },
	{ "two of three at the second package", 6, 2, { { 0, 8, 1 }, { 8, 8, 2 } }, 2, 0, "0+8<=2 8+8<=4 " },
	{ "a remainder", 4, 1, { { 0, 8, 1 }, { 8, 8, 2 } }, 2, 0, "0+8<=1 8+8<=3 " },
	{ "the first comes first", 3, 1, { { 0, 8, 1 }, { 8, 8, 1 } }, 2, 0, "0+8<=2 8+8<=1 " },
	{ "none is without a task", 3, 1, { { 0, 4, 6 }, { 4, 4, 1 }, { 8, 4, 1 } }, 3, 0,
	  "0+4<=1 4+4<=1 8+4<=1 " },
	{ "NUMA nodes of three packages' devices", 8, 1, { { 0, 4, 2 }, { 4, 4, 1 }, { 12, 4, 1 } }, 3, 0,
	  "0+4<=4 4+4<=2 12+4<=2 " },
	{ "one has no room for more", 8, 2, { { 0, 4, 1 }, { 4, 4, 1 }, { 8, 8, 1 } }, 3, 0x6,
	  "0+4<=2 4+4<=4 8+8<=2 " },
	{ "a set that is no domain", 6, 2, { { 0, 4, 1 }, { 4, 8, 1 } }, 2, 0, "" },
	{ "one has no room for a whole task", 6, 2, { { 0, 8, 1 }, { 8, 8, 1 } }, 2, 0x7f, "0+8<=0 8+8<=6 " },
	{ "all that there is", 8, 1, { { 0, 4, 1 }, { 4, 4, 1 } }, 2, 0, "0+4<=4 4+4<=4 " },
	{ "more than there is", 7, 1, { { 0, 4, 1 }, { 4, 4, 1 } }, 2, 0x3, "" },
	{ "one task", 4, 4, { { 0, 8, 1 }, { 8, 8, 1 } }, 2, 0, "0+8<=2 8+8<=2 " },
	{ "one task with three devices", 8, 8, { { 0, 8, 1 }, { 8, 8, 2 } }, 2, 0, "0+8<=3 8+8<=5 " },
	{ "one task, one core near the first", 8, 8, { { 0, 8, 1 }, { 8, 8, 2 } }, 2, 0x7f, "0+8<=1 8+8<=7 " },
	{ "two tasks near four sets", 6, 3, { { 0, 4, 1 }, { 4, 4, 1 }, { 8, 4, 1 }, { 12, 4, 1 } }, 4, 0,
	  "0+4<=2 4+4<=2 8+4<=1 12+4<=1 " },
	{ "one set", 4, 1, { { 0, 8, 2 } }, 1, 0, "" },
	{ "no set", 4, 1, .n = 0, .limits = "" },
	{ "parts of tasks", 5, 2, { { 0, 8, 1 }, { 8, 8, 1 } }, 2, 0, "" },
};

static void expect_limits(const char *why, const struct score_need *need, uint64_t free_cores,
			  const struct device_share *shares, unsigned n, const char *wanted)
{
	struct shape *s = shape_parse(four, NULL);
	struct score_limit limits[4];
	char text[256] = "";

	assert_non_null(s);
	n = device_share_limits(s, &free_cores, need, shares, n, limits);
	for (unsigned i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u+%u<=%u ", limits[i].first,
			 limits[i].cores, limits[i].most);
	if (strcmp(text, wanted))
		fail_msg("%s: wanted '%s', got '%s'", why, wanted, text);
	shape_free(s);
}

TEST(shares_are_in_proportion)
{
	for (size_t r = 0; r < ROWS(rows); r++) {
		struct score_need need = { .cores = rows[r].cores, .task_cores = rows[r].task_cores,
					   .fit = FIT_PREFER };

		expect_limits(rows[r].why, &need, 0xffff & ~rows[r].busy, rows[r].shares, rows[r].n, rows[r].limits);
	}
}

/* Tasks of 7 CPUs on cores of two threads have 3.5 cores each. */
TEST(tasks_share_a_core)
{
	static const struct device_share each[] = { { 0, 4, 1 }, { 4, 4, 1 }, { 8, 4, 1 }, { 12, 4, 1 } },
					 packages[] = { { 0, 8, 1 }, { 8, 8, 2 } };
	struct score_need need = { .cores = 14, .task_cores = 4, .task = { 7, 2 } };

	expect_limits("a task at each of four", &need, 0xffff, each, 4, "0+4<=4 4+4<=3 8+4<=4 12+4<=3 ");
	need.cores = 11;
	expect_limits("one and two", &need, 0xffff, packages, 2, "0+8<=4 8+8<=7 ");
	need.cores = 7;
	expect_limits("two tasks near four", &need, 0xffff, each, 4, "0+4<=2 4+4<=2 8+4<=2 12+4<=1 ");
	need.cores = 12;
	expect_limits("no number of tasks has as many", &need, 0xffff, packages, 2, "");
}

TEST(other_limits_come_first)
{
	static const struct device_share shares[] = { { 0, 8, 1 }, { 8, 8, 1 } };
	const struct request_path path = { .steps = 1, .step = { { LEVEL_CORE, 2 } } };
	struct score_limit limit = { 0, 4, 1 }, out[2];
	struct shape *s = shape_parse(four, NULL);
	uint64_t free_cores = 0xffff;
	struct score_need need = { .cores = 2, .task_cores = 1 };

	assert_int_equal(device_share_limits(s, &free_cores, &need, shares, 2, out), 2);
	need.path = &path;
	assert_int_equal(device_share_limits(s, &free_cores, &need, shares, 2, out), 0);
	need.path = NULL;
	need.limits = &limit;
	need.nlimits = 1;
	assert_int_equal(device_share_limits(s, &free_cores, &need, shares, 2, out), 0);
	shape_free(s);
}

TESTS_MAIN(NULL, NULL)
