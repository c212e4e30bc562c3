/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TESTS_TABLE_H
#define TOPIARY_TESTS_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/*
 * A case is registered where it is defined, and a program's cases run in the order of its source:
 *
 *	TEST(reads_what_it_wrote)
 *	{
 *		assert_int_equal(...);
 *	}
 *	TESTS_MAIN(NULL, NULL)
 *
 * TEST(name, .setup_func = begin, .teardown_func = end) has fixtures of its own; those of TESTS_MAIN are the program's.
 * A program that does more in main() calls tests_run() there. tests/conftest.py finds the cases by "TEST(" at the
 * beginning of a line.
 */
static struct {
	struct CMUnitTest test[64];
	unsigned line[64];
	size_t n;
} tests;

/* Constructors run in an order that the compiler chooses. */
static inline void test_add(const struct CMUnitTest *test, unsigned line)
{
	size_t at = tests.n++;

	if (at == ROWS(tests.test))
		abort();
	for (; at && tests.line[at - 1] > line; at--) {
		tests.test[at] = tests.test[at - 1];
		tests.line[at] = tests.line[at - 1];
	}
	tests.test[at] = *test;
	tests.line[at] = line;
}

#define TEST(name_, ...) \
	static void name_(void **); \
	__attribute__((constructor)) static void name_##_add(void) \
	{ \
		test_add(&(struct CMUnitTest){ .name = #name_, .test_func = name_, ##__VA_ARGS__ }, __LINE__); \
	} \
	static void name_(void **state __attribute__((unused)))

static inline int tests_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	return _cmocka_run_group_tests("tests", tests.test, tests.n, setup, teardown);
}

#define TESTS_MAIN(setup, teardown) \
	int main(void) \
	{ \
		return tests_run(setup, teardown); \
	}

#endif
