/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../select_plugin/score.h"
#include "table.h"

#define MOST 128

/* Cores as text: one character a core, 'x' for what is set, ' ' between is read over. */
static unsigned cores_read(const char *text, bool *cores)
{
	unsigned n = 0;

	for (; *text; text++)
		if (*text != ' ')
			cores[n++] = *text == 'x';
	return n;
}

static struct shape *shape_of(const char *text)
{
	struct err e = {0};
	struct shape *s = shape_parse(text, &e);

	if (!s)
		print_error("%s\n", e.text);
	assert_non_null(s);
	return s;
}

static void picks(void **state)
{
	static const struct {
		const char *why, *shape, *free;
		unsigned cores;
		const char *chosen;
	} rows[] = {
		{ "a whole package", "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", 6, "xxxxxx ------" },
		{ "lowest of equals", "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", 4, "xxxx-- ------" },
		{ "exact before larger", "Package:2 Core:6 PU:1", "xxxxxx --xxxx", 4, "------ --xxxx" },
		{ "broken before intact", "Package:2 Core:6 PU:1", "xxxxxx -xxxxx", 4, "------ -xxxx-" },
		{ "least left over", "Package:3 Core:6 PU:1", "-xxxxx --xxxx ------", 3, "------ --xxx- ------" },
		{ "one package, though it is intact", "Package:2 Core:6 PU:1", "xxxxxx ----xx", 3, "xxx--- ------" },
		{ "an L3 exactly", "Package:1 L3Cache:2 Core:4 PU:1", "---x xxxx", 4, "---- xxxx" },
		{ "an L3 that is left, exactly", "Package:2 L3Cache:2 Core:4 PU:2", "xxxx xxxx ---- xxxx", 4, "---- ---- ---- xxxx" },
		{ "fewest L3 of one package", "Package:1 L3Cache:4 Core:2 PU:1", "x- x- xx xx", 4, "-- -- xx xx" },
		{ "an intact L3 rather than two broken ones", "Package:1 L3Cache:3 Core:4 PU:1", "xx-- xx-- xxxx", 4,
		  "---- ---- xxxx" },
		{ "exact combination", "Package:3 Core:4 PU:1", "xxxx x--- xxx-", 5, "xxxx x--- ----" },
		{ "exact combination, not the largest two", "Package:4 Core:8 PU:1", "xxxxxxx- xxxxx--- xxxxxx-- xxx-----", 9,
		  "-------- -------- xxxxxx-- xxx-----" },
		{ "across packages, the rest of one packed", "Package:2 L3Cache:2 Core:4 PU:1", "xxxx xxxx xxxx xxxx", 12,
		  "xxxx ---- xxxx xxxx" },
		{ "asymmetric", "{ Package:1 Core:8 PU:2 | Package:1 Core:4 PU:2 }", "xxxxxxxx xxxx", 4, "-------- xxxx" },
		{ "asymmetric within", "Package:1 { L3Cache:1 Core:6 PU:1 | L3Cache:2 Core:3 PU:1 }", "xxxxxx xxx xxx", 3,
		  "------ xxx ---" },
		{ "hybrid threads", "Package:1 { Core:2 PU:2 | L2Cache:1 Core:4 PU:1 }", "xx xxxx", 4, "-- xxxx" },
		{ "L2 pairs", "Package:1 L2Cache:4 Core:2 PU:2", "x- xx -x xx", 2, "-- xx -- --" },
		{ "cores alone", "Core:6 PU:1", "-xx-xx", 3, "-xx-x-" },
		{ "the whole node", "Package:2 Core:2 PU:1", "xx xx", 4, "xx xx" },
		{ "all that is free", "Package:2 Core:3 PU:1", "x-- --x", 2, "x-- --x" },
		{ "one core of a broken L3", "Package:1 L3Cache:2 Core:4 PU:1", "xxxx -xxx", 1, "---- -x--" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct shape *s = shape_of(rows[i].shape);
		bool free_cores[MOST], wanted[MOST], chosen[MOST];
		struct score_need need = { .cores = rows[i].cores, .within = LEVEL_CORE };
		struct score_cost cost;

		assert_int_equal(cores_read(rows[i].free, free_cores), s->cores);
		assert_int_equal(cores_read(rows[i].chosen, wanted), s->cores);
		assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), 0);
		if (memcmp(chosen, wanted, s->cores)) {
			print_error("%s: wanted %s, got ", rows[i].why, rows[i].chosen);
			for (unsigned c = 0; c < s->cores; c++)
				print_error("%c", chosen[c] ? 'x' : '-');
			print_error("\n");
		}
		assert_memory_equal(chosen, wanted, s->cores);
		shape_free(s);
	}
	(void) state;
}

static void refuses(void **state)
{
	static const struct {
		const char *free;
		unsigned cores;
	} rows[] = { { "xx xx", 0 }, { "xx xx", 5 }, { "x- --", 2 }, { "-- --", 1 } };
	struct shape *s = shape_of("Package:2 Core:2 PU:1");

	for (size_t i = 0; i < ROWS(rows); i++) {
		bool free_cores[MOST], chosen[MOST] = { true, false, true, false };
		static const bool before[] = { true, false, true, false };
		struct score_need need = { .cores = rows[i].cores, .within = LEVEL_CORE };
		struct score_cost cost = { .beyond = 77 };

		cores_read(rows[i].free, free_cores);
		assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), -1);
		assert_memory_equal(chosen, before, sizeof(before));
		assert_int_equal(cost.beyond, 77);
	}
	shape_free(s);
	(void) state;
}

/* Of two nodes the first is to be the better one. */
static void ranks(void **state)
{
	static const struct {
		const char *why, *shape, *free, *other, *other_free;
		unsigned cores;
		enum level within;
	} rows[] = {
		{ "exact package", "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", "Package:4 Core:4 PU:1",
		  "xxxx xxxx xxxx xxxx", 6, LEVEL_CORE },
		{ "exact node", "Package:1 Core:4 PU:1", "xxxx", "Package:1 Core:6 PU:1", "xxxxxx", 4, LEVEL_CORE },
		{ "broken node", "Package:2 Core:4 PU:1", "-xxx xxxx", "Package:2 Core:4 PU:1", "xxxx xxxx", 2, LEVEL_CORE },
		{ "one package", "Package:1 Core:8 PU:1", "xxxxxxxx", "Package:2 Core:4 PU:1", "xxxx xxxx", 5, LEVEL_CORE },
		{ "one L3 wanted, two packages allowed", "Package:2 L3Cache:1 Core:8 PU:1", "xxxxxxxx xxxxxxxx",
		  "Package:1 L3Cache:4 Core:4 PU:1", "xxxx xxxx xxxx xxxx", 8, LEVEL_L3 },
		{ "whole L3 before part of a package with private caches", "Package:4 L3Cache:2 L2Cache:2 Core:2 PU:1",
		  "xxxx xxxx xxxx xxxx xxxx xxxx xxxx xxxx", "Package:2 L3Cache:1 L2Cache:8 Core:1 PU:1", "xxxxxxxx xxxxxxxx", 4,
		  LEVEL_CORE },
		{ "no L3 known is the package", "Package:2 Core:4 PU:1", "xxxx xxxx", "Package:2 L3Cache:2 Core:2 PU:1",
		  "xx xx xx xx", 4, LEVEL_L3 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct shape *a = shape_of(rows[i].shape), *b = shape_of(rows[i].other);
		bool free_a[MOST], free_b[MOST], chosen[MOST];
		struct score_need need = { .cores = rows[i].cores, .within = rows[i].within };
		struct score_cost x, y;

		cores_read(rows[i].free, free_a);
		cores_read(rows[i].other_free, free_b);
		assert_int_equal(score_pick(a, free_a, &need, chosen, &x), 0);
		assert_int_equal(score_pick(b, free_b, &need, chosen, &y), 0);
		if (score_compare(&x, &y) >= 0)
			print_error("%s\n", rows[i].why);
		assert_true(score_compare(&x, &y) < 0);
		assert_true(score_compare(&y, &x) > 0);
		assert_int_equal(score_compare(&x, &x), 0);
		shape_free(a);
		shape_free(b);
	}
	(void) state;
}

/* Domains of a level that a set of cores lies in. */
static unsigned touched(const struct shape *s, unsigned set, enum level level)
{
	unsigned n = 0;

	for (size_t d = 0; d < s->ndomains; d++) {
		unsigned mask = ((1u << s->domains[d].cores) - 1) << s->domains[d].first;

		n += s->domains[d].level == level && (set & mask);
	}
	return n;
}

/* The first level at which a set is spread over several domains. */
static unsigned split_at(const struct shape *s, unsigned set, enum level *level)
{
	for (int l = LEVEL_PACKAGE; l < LEVEL_CORE; l++)
		if (touched(s, set, l) > 1) {
			*level = l;
			return touched(s, set, l);
		}
	*level = LEVEL_CORE;
	return 1;
}

static unsigned as_bits(const bool *cores, unsigned n)
{
	unsigned set = 0;

	for (unsigned c = 0; c < n; c++)
		set |= (unsigned) cores[c] << c;
	return set;
}

/* No other choice of as many free cores is split at a higher level less often: against all of them. */
static void nothing_dominates(void **state)
{
	static const char *const shapes[] = {
		"Package:2 Core:6 PU:1", "Package:3 L3Cache:2 Core:2 PU:1", "Package:2 NUMANode:2 L3Cache:1 Core:3 PU:1",
		"{ Package:1 Core:5 PU:1 | Package:2 L3Cache:1 Core:3 PU:1 }",
		"Package:1 { L3Cache:1 Core:5 PU:1 | L3Cache:2 L2Cache:2 Core:2 PU:1 }",
		"Package:4 L2Cache:1 Core:3 PU:2", "L3Cache:3 L2Cache:2 Core:2 PU:1",
	};

	srand(1);
	for (unsigned round = 0; round < 400; round++) {
		struct shape *s = shape_of(shapes[round % ROWS(shapes)]);
		bool free_cores[MOST] = {0}, chosen[MOST];
		struct score_need need = { .within = LEVEL_CORE };
		struct score_cost cost;
		unsigned have, got, got_parts;
		enum level got_level;

		for (unsigned c = 0; c < s->cores; c++)
			free_cores[c] = rand() % 3;
		have = as_bits(free_cores, s->cores);
		need.cores = 1 + rand() % s->cores;
		if (need.cores > (unsigned) __builtin_popcount(have)) {
			assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), -1);
			shape_free(s);
			continue;
		}
		assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), 0);
		got = as_bits(chosen, s->cores);
		got_parts = split_at(s, got, &got_level);
		assert_int_equal(got & ~have, 0);
		assert_int_equal(__builtin_popcount(got), need.cores);
		for (unsigned set = have; set; set = (set - 1) & have) {
			enum level level;
			unsigned parts;

			if ((unsigned) __builtin_popcount(set) != need.cores)
				continue;
			parts = split_at(s, set, &level);
			if (level > got_level || (level == got_level && parts < got_parts))
				print_error("%s: free %#x, %u cores: got %#x, %#x is better\n", s->text, have, need.cores, got, set);
			assert_true(level < got_level || (level == got_level && parts >= got_parts));
		}
		shape_free(s);
	}
	(void) state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picks),
		cmocka_unit_test(refuses),
		cmocka_unit_test(ranks),
		cmocka_unit_test(nothing_dominates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
