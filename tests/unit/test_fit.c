/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score.h"
#include "table.h"

OWNS(struct shape *, shape_free)

#define MOST 128		/* cores, where shapes are written down */
#define WORDS (MOST / 64)

/* Cores as text: one character a core, 'x' for what is set, ' ' between is read over. Returns their number. */
static unsigned cores_read(const char *text, uint64_t *cores)
{
	unsigned n = 0;

	memset(cores, 0, WORDS * sizeof(*cores));
	for (; *text; text++) {
		if (*text == ' ')
			continue;
		cores[n / 64] |= (uint64_t) (*text == 'x') << n % 64;
		n++;
	}
	return n;
}

static struct shape *shape_of(const char *text)
{
	struct shape *s = shape_parse(text, &err);

	assert_made(s);
	return s;
}

static void expect_cores(const char *why, const char *wanted, const uint64_t *chosen)
{
	uint64_t cores[WORDS];
	unsigned n = cores_read(wanted, cores);

	if (!memcmp(cores, chosen, core_set_words(n) * sizeof(*cores)))
		return;
	print_error("%s: wanted %s, got ", why, wanted);
	for (unsigned c = 0; c < n; c++)
		print_error("%c", chosen[c / 64] >> c % 64 & 1 ? 'x' : '-');
	fail_msg(".");
}

#define PATH(n, ...) { .steps = n, .step = { __VA_ARGS__ } }

/*
 * What is chosen of one node; "" for what cannot be had. That nothing is better is tried on random machines below: here
 * are an example of each rule, which of equals is taken, and what random requests do not have.
 */
TEST(chooses_by_rule)
{
	static const struct {
		const char *why;
		enum fit fit;
		const char *shape, *free;
		unsigned cores;
		const char *chosen;
		unsigned task_cores;	/* 0 for 1 */
		enum level level;
		struct request_path path;
	} rows[] = {
		{ "a whole package", FIT_PREFER, "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", 6,
		  .chosen = "xxxxxx ------" },
		{ "lowest of equals", FIT_PREFER, "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", 4,
		  .chosen = "xxxx-- ------" },
		{ "broken before intact", FIT_PREFER, "Package:2 Core:6 PU:1", "xxxxxx -xxxxx", 4,
		  .chosen = "------ -xxxx-" },
		{ "one package, though it is intact", FIT_PREFER, "Package:2 Core:6 PU:1", "xxxxxx ----xx", 3,
		  .chosen = "xxx--- ------" },
		{ "fewest L3 of one package", FIT_PREFER, "Package:1 L3Cache:4 Core:2 PU:1", "x- x- xx xx", 4,
		  .chosen = "-- -- xx xx" },
		{ "whole tasks before fewer L3", FIT_PREFER, "Package:1 L3Cache:3 Core:4 PU:1", "xxxx xx-- xx--", 6,
		  .chosen = "xxxx xx-- ----", .task_cores = 2 },
		{ "fewest L3 though in two packages", FIT_PREFER, "Package:2 L3Cache:3 Core:4 PU:1",
		  "xx-- xx-- xxxx xxxx ---- ----", 8, .chosen = "xx-- xx-- xxxx ---- ---- ----" },
		{ "the same, but the level is named", FIT_PREFER, "Package:2 L3Cache:3 Core:4 PU:1",
		  "xx-- xx-- xxxx xxxx ---- ----", 8, .chosen = "---- ---- xxxx xxxx ---- ----", .level = LEVEL_L3 },
		{ "none are wanted", FIT_PREFER, "Package:2 Core:2 PU:1", "xx xx", 0, .chosen = "" },
		{ "more than are free", FIT_PREFER, "Package:2 Core:2 PU:1", "x- --", 2, .chosen = "" },
		{ "any place", FIT_REQUIRE, "Package:2 Core:2 PU:1", "xx xx", 3, .chosen = "xx x-" },
		{ "no L3 known is the package", FIT_REQUIRE, "Package:2 Core:4 PU:1", "xxxx xxxx", 4,
		  .chosen = "xxxx ----",
		  .level = LEVEL_L3 },
		{ "no L3 has them", FIT_REQUIRE, "Package:2 L3Cache:2 Core:2 PU:1", "xx xx xx xx", 3, .chosen = "",
		  .level = LEVEL_L3 },
		{ "memory in memory", FIT_REQUIRE, "[NUMANode] Package:2 [NUMANode] Core:2 PU:1", "-x xx", 2,
		  .chosen = "-- xx",
		  .level = LEVEL_NUMA },
		{ "one package, two L3, four of each", FIT_REQUIRE, "Package:2 L3Cache:3 Core:4 PU:1",
		  "xxxx xxx- xxx- xxxx ---- xxxx", 8, .chosen = "---- ---- ---- xxxx ---- xxxx",
		  .path = PATH(3, { LEVEL_PACKAGE, 1 }, { LEVEL_L3, 2 }, { LEVEL_CORE, 4 }) },
		{ "not its number", FIT_REQUIRE, "Package:2 Core:4 PU:1", "xxxx xxxx", 4, .chosen = "",
		  .path = PATH(2, { LEVEL_PACKAGE, 1 }, { LEVEL_CORE, 3 }) },
		{ "a number that wraps", FIT_REQUIRE, "Package:2 Core:4 PU:1", "xxxx xxxx", 2, .chosen = "",
		  .path = PATH(3, { LEVEL_PACKAGE, 1 }, { LEVEL_NUMA, 0x80000001 }, { LEVEL_CORE, 2 }) },
		{ "over packages first", FIT_SPREAD, "Package:2 L3Cache:2 Core:2 PU:1", "xx xx xx xx", 2,
		  .chosen = "x- -- x- --" },
		{ "the freest before other packages", FIT_SPREAD, "Package:2 L3Cache:2 Core:4 PU:1",
		  "xxxx xxxx xxx- xxx-", 2, .chosen = "x--- x--- ---- ----" },
		{ "the first of equals", FIT_SPREAD, "L3Cache:3 Core:2 PU:1", "-- xx xx", 1, .chosen = "-- x- --" },
		{ "half a task", FIT_SPREAD, "Package:1 L3Cache:3 Core:4 PU:1", "xxxx xxxx xxxx", 3, .chosen = "",
		  .task_cores = 2 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *s = shape_of(rows[i].shape);
		struct score_need need = {
			.cores = rows[i].cores, .task_cores = rows[i].task_cores ? rows[i].task_cores : 1,
			.fit = rows[i].fit, .level = rows[i].level, .path = &rows[i].path,
		};
		uint64_t free_cores[WORDS], chosen[WORDS] = {0};
		struct score_cost cost;

		assert_int_equal(cores_read(rows[i].free, free_cores), s->cores);
		assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), !*rows[i].chosen);
		expect_cores(rows[i].why, rows[i].chosen, chosen);
	}
}

TEST(refusals_leave_all_as_it_was)
{
	OWNED(shape_free) struct shape *s = shape_of("Package:2 Core:2 PU:1");
	uint64_t free_cores = 0xf, chosen = 0x5;
	struct score_cost cost = { .word = { 77 } };
	struct request_path path = PATH(2, { LEVEL_L3, 1 }, { LEVEL_CORE, 2 });
	const struct score_need rows[] = {
		{ .cores = 5, .task_cores = 1, .fit = FIT_PREFER },
		{ .cores = 3, .task_cores = 1, .fit = FIT_REQUIRE, .level = LEVEL_PACKAGE },
		{ .cores = 2, .task_cores = 1, .fit = FIT_REQUIRE, .path = &path },
		{ .cores = 3, .task_cores = 3, .fit = FIT_SPREAD },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_int_equal(score_pick(s, &free_cores, &rows[i], &chosen, &cost), 1);
		assert_int_equal(chosen, 0x5);
		assert_int_equal(cost.word[0], 77);
	}
}

TEST(a_path_chooses_the_kind_of_core)
{
	static const char hybrid[] = "Package:1 { L2Cache:4 Core:1(kind=1) PU:2 | L2Cache:1 Core:4 PU:1 }";
	static const struct {
		const char *shape;
		uint64_t free_cores;
		enum request_kind kind;
		unsigned cores;
		uint64_t chosen;	/* 0: not available */
	} rows[] = {
		{ hybrid, 0xff, REQUEST_PERFORMANCE, 2, 0x03 }, { hybrid, 0xff, REQUEST_PERFORMANCE, 5, 0 },
		{ hybrid, 0xff, REQUEST_EFFICIENCY, 2, 0x30 }, { hybrid, 0xf1, REQUEST_PERFORMANCE, 2, 0 },
		{ hybrid, 0x8f, REQUEST_EFFICIENCY, 1, 0x80 }, { hybrid, 0xff, REQUEST_ANY_KIND, 8, 0xff },
		{ "Package:2 Core:4", 0xff, REQUEST_PERFORMANCE, 4, 0x0f },
		{ "Package:2 Core:4", 0xff, REQUEST_EFFICIENCY, 1, 0 },
		{ "{ Core:2(kind=2) | Core:2(kind=1) | Core:2 }", 0x3f, REQUEST_PERFORMANCE, 2, 0x03 },
		{ "{ Core:2(kind=2) | Core:2(kind=1) | Core:2 }", 0x3f, REQUEST_EFFICIENCY, 2, 0x30 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *s = shape_of(rows[i].shape);
		struct request_path path = PATH(1, { LEVEL_CORE, rows[i].cores });
		struct score_need need = { .cores = rows[i].cores, .task_cores = 1, .fit = FIT_REQUIRE, .path = &path };
		uint64_t chosen = 0;
		struct score_cost cost;

		path.kind = rows[i].kind;
		assert_int_equal(score_pick(s, &rows[i].free_cores, &need, &chosen, &cost), !rows[i].chosen);
		if (chosen != rows[i].chosen)
			fail_msg("row %zu: %#lx", i, (unsigned long) chosen);
	}
}

/* Of two nodes the first is to be the better one, by the row and level that are named. */
TEST(ranks)
{
	static const struct {
		const char *why, *shape, *free, *other, *other_free;
		unsigned cores;
		enum score_row row;
		enum level decided;
		enum level level;
		unsigned task_cores;
	} rows[] = {
		{ "exact package", "Package:2 Core:6 PU:1", "xxxxxx xxxxxx", "Package:4 Core:4 PU:1",
		  "xxxx xxxx xxxx xxxx", 6, .row = SCORE_TOUCHED, .decided = LEVEL_PACKAGE },
		{ "exact node", "Package:1 Core:4 PU:1", "xxxx", "Package:1 Core:6 PU:1", "xxxxxx", 4,
		  .row = SCORE_OPEN, .decided = LEVEL_PACKAGE },
		{ "broken node", "Package:2 Core:4 PU:1", "-xxx xxxx", "Package:2 Core:4 PU:1", "xxxx xxxx", 2,
		  .row = SCORE_BROKEN, .decided = LEVEL_PACKAGE },
		{ "the rest of a node", "Package:2 Core:4 PU:1", "---- xxxx", "Package:2 Core:4 PU:1", "xxxx xxxx", 4,
		  .row = SCORE_LEFT, .decided = LEVEL_NODE },
		{ "one package", "Package:1 Core:8 PU:1", "xxxxxxxx", "Package:2 Core:4 PU:1", "xxxx xxxx", 5,
		  .row = SCORE_TOUCHED, .decided = LEVEL_PACKAGE },
		{ "one L3 wanted, two packages allowed", "Package:2 L3Cache:1 Core:8 PU:1", "xxxxxxxx xxxxxxxx",
		  "Package:1 L3Cache:4 Core:4 PU:1", "xxxx xxxx xxxx xxxx", 8,
		  .row = SCORE_BEYOND, .decided = LEVEL_NODE, .level = LEVEL_L3 },
		{ "whole L3 before part of a package with private caches", "Package:4 L3Cache:2 L2Cache:2 Core:2 PU:1",
		  "xxxx xxxx xxxx xxxx xxxx xxxx xxxx xxxx", "Package:2 L3Cache:1 L2Cache:8 Core:1 PU:1",
		  "xxxxxxxx xxxxxxxx", 4, .row = SCORE_TOUCHED, .decided = LEVEL_L2 },
		{ "no L3 known is the package", "Package:2 Core:4 PU:1", "xxxx xxxx", "Package:2 L3Cache:2 Core:2 PU:1",
		  "xx xx xx xx", 4, .row = SCORE_BEYOND, .decided = LEVEL_NODE, .level = LEVEL_L3 },
		{ "whole tasks", "Package:1 L3Cache:2 Core:4 PU:1", "xxxx ----", "Package:1 L3Cache:2 Core:4 PU:1",
		  "x--- xxx-", 4, .row = SCORE_CUTS, .decided = LEVEL_L3, .task_cores = 2 },
		{ "an L3 that a task fits into", "Package:1 L3Cache:2 Core:4 PU:1", "xxxx ----",
		  "Package:1 L3Cache:4 Core:2 PU:1", "xx xx xx xx", 4, .row = SCORE_CUTS, .decided = LEVEL_L3,
		  .task_cores = 4 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *a = shape_of(rows[i].shape), *b = shape_of(rows[i].other);
		struct score_need need = {
			.cores = rows[i].cores, .task_cores = rows[i].task_cores ? rows[i].task_cores : 1,
			.fit = FIT_PREFER, .level = rows[i].level,
		};
		uint64_t free_a[WORDS], free_b[WORDS];
		struct score_cost x, y;
		enum score_row row;
		enum level level;

		assert_int_equal(cores_read(rows[i].free, free_a), a->cores);
		assert_int_equal(cores_read(rows[i].other_free, free_b), b->cores);
		assert_int_equal(score_pick(a, free_a, &need, NULL, &x), 0);
		assert_int_equal(score_pick(b, free_b, &need, NULL, &y), 0);
		if (score_compare(&x, &y) >= 0)
			fail_msg("%s", rows[i].why);
		assert_true(score_compare(&y, &x) > 0);
		assert_int_equal(score_compare(&x, &x), 0);
		assert_true(score_differ(&x, &y, &row, &level) < 0);
		if (row != rows[i].row || level != rows[i].decided)
			fail_msg("%s: by row %d, level %d", rows[i].why, row, level);
	}
}

/* What has no count has none, and what is equal differs in nothing. */
TEST(counts_what_there_is)
{
	OWNED(shape_free) struct shape *s = shape_of("Package:2 L3Cache:2 Core:4 PU:1");
	uint64_t free_cores = 0xf7f3;
	struct score_need need = { .cores = 5, .task_cores = 2, .fit = FIT_PREFER, .level = LEVEL_L3 };
	static const struct {
		enum score_row row;
		enum level level;
		unsigned count;
	} rows[] = {
		{ SCORE_BEYOND, LEVEL_NODE, 1 }, { SCORE_BEYOND, LEVEL_L2, 1 },
		{ SCORE_CUTS, LEVEL_NUMA, 0 }, { SCORE_CUTS, LEVEL_L3, 0 }, { SCORE_CUTS, LEVEL_PACKAGE, 0 },
		{ SCORE_TOUCHED, LEVEL_NODE, 0 }, { SCORE_TOUCHED, LEVEL_PACKAGE, 1 }, { SCORE_TOUCHED, LEVEL_DIE, 1 },
		{ SCORE_TOUCHED, LEVEL_NUMA, 1 }, { SCORE_TOUCHED, LEVEL_L3, 2 }, { SCORE_TOUCHED, LEVEL_L2, 5 },
		{ SCORE_TOUCHED, LEVEL_CORE, 0 },
		{ SCORE_OPEN, LEVEL_PACKAGE, 1 }, { SCORE_OPEN, LEVEL_L3, 1 }, { SCORE_OPEN, LEVEL_L2, 0 },
		{ SCORE_BROKEN, LEVEL_PACKAGE, 0 }, { SCORE_BROKEN, LEVEL_L3, 0 },
		{ SCORE_LEFT, LEVEL_PACKAGE, 1 }, { SCORE_LEFT, LEVEL_L3, 1 }, { SCORE_LEFT, LEVEL_L2, 0 },
		{ SCORE_LEFT, LEVEL_NODE, 8 },
		{ SCORE_ROWS, LEVEL_L3, 0 },
	};
	enum score_row row = SCORE_ROWS;
	enum level level = LEVEL_COUNT;
	struct score_cost cost;
	uint64_t chosen;

	assert_int_equal(score_pick(s, &free_cores, &need, &chosen, &cost), 0);
	assert_int_equal(chosen, 0x00f1);
	for (size_t i = 0; i < ROWS(rows); i++)
		if (score_count(&cost, rows[i].row, rows[i].level) != rows[i].count)
			fail_msg("row %d, level %d: %u", rows[i].row, rows[i].level,
				 score_count(&cost, rows[i].row, rows[i].level));
	assert_int_equal(score_differ(&cost, &cost, &row, &level), 0);
	assert_int_equal(row, SCORE_ROWS);
	assert_int_equal(level, LEVEL_COUNT);
}

TEST(takes_large_shapes)
{
	static const struct score_need one_core = { .task_cores = 1 };
	static uint64_t free_cores[1024], chosen[1024];
	OWNED(shape_free) struct shape *refused = shape_of("Package:2 Core:32768"), *flat = shape_of("Core:65535");
	OWNED(shape_free) struct shape *s = shape_of("Package:5 L3Cache:4369 Core:3");
	struct score_need need = { .cores = 65535, .task_cores = 1, .fit = FIT_PREFER };
	struct score_table *t;
	struct score_cost cost;

	memset(free_cores, 0xff, sizeof(free_cores));
	assert_int_equal(score_pick(refused, free_cores, &need, chosen, &cost), -1);
	assert_null(score_table_new(refused, free_cores, &one_core));
	free_cores[1023] >>= 1;
	assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), 0);
	assert_memory_equal(chosen, free_cores, sizeof(chosen));
	assert_int_equal(score_count(&cost, SCORE_TOUCHED, LEVEL_L3), 5 * 4369);
	assert_int_equal(score_count(&cost, SCORE_TOUCHED, LEVEL_L2), 65535);
	need.cores = 7;
	assert_int_equal(score_pick(s, free_cores, &need, chosen, &cost), 0);
	assert_int_equal(chosen[0], 0x7f);
	assert_int_equal(score_count(&cost, SCORE_LEFT, LEVEL_PACKAGE), 3 * 4369 - 7);
	assert_int_equal(score_count(&cost, SCORE_LEFT, LEVEL_NODE), 65535 - 7);
	t = score_table_new(flat, free_cores, &one_core);
	assert_non_null(t);
	assert_int_equal(score_count(score_table_cost(t, 65535), SCORE_TOUCHED, LEVEL_L3), 65535);
	assert_true(score_table_bytes(t) >= 65535 * sizeof(cost) && score_table_bytes(t) < 65540 * sizeof(cost));
	score_table_free(t);
	memset(free_cores, 0, sizeof(free_cores));
	t = score_table_new(s, free_cores, &one_core);
	assert_non_null(t);
	assert_null(score_table_cost(t, 0));
	assert_null(score_table_cost(t, 1));
	score_table_free(t);
	score_table_free(NULL);
}

/*
 * From here on, small trees at random against all that could be chosen, judged by the words of score.h: no code or idea
 * is shared with what is tested. Sets of cores are masks, a domain is the mask of its cores.
 */
#define SMALL 12
#define COUNTS (1 + 2 + 4 * SCORE_LEVELS + 1)

struct judge {
	const struct shape *shape;
	unsigned free, task_cores;
	struct score_task task;		/* in CPUs, of a core's */
	enum level level;
	unsigned domain[LEVEL_COUNT][SMALL];	/* of each level, that each core counts in */
	unsigned within[SMALL];			/* the domain of "beyond" */
};

static unsigned bits(unsigned set)
{
	return __builtin_popcount(set);
}

static unsigned mask_of(const struct shape_domain *d)
{
	return ((1u << d->cores) - 1) << d->first;
}

static bool holds_level(const struct shape *s, const struct shape_domain *outer, enum level level)
{
	for (const struct shape_domain *d = outer + 1; d < s->domains + s->ndomains; d++) {
		if (d->level != level)
			continue;
		for (const struct shape_domain *up = d; up->parent >= 0; up = s->domains + up->parent)
			if (s->domains + up->parent == outer)
				return true;
	}
	return false;
}

/*
 * The domain of a level that a core counts in: what there is, or the smaller of `other` and of all that lacks it about
 * the core.
 */
static unsigned counts_in(const struct shape *s, enum level level, unsigned core, unsigned other)
{
	unsigned lacking = 0, found = 0;

	for (const struct shape_domain *d = s->domains; d < s->domains + s->ndomains; d++) {
		if (!(mask_of(d) >> core & 1) || holds_level(s, d, level))
			continue;
		if (d->level == level)
			found = mask_of(d);
		if (!lacking)
			lacking = mask_of(d);
	}
	if (found)
		return found;
	return bits(other) < bits(lacking) ? other : lacking;
}

static void judge_init(struct judge *j, const struct shape *s, unsigned free_cores, unsigned task_cores,
		       enum level level)
{
	*j = (struct judge){ .shape = s, .free = free_cores, .task_cores = task_cores, .level = level,
				.task = { task_cores, 1 } };
	for (unsigned c = 0; c < s->cores; c++) {
		unsigned *in[LEVEL_COUNT];

		for (int l = 0; l < LEVEL_COUNT; l++)
			in[l] = &j->domain[l][c];
		*in[LEVEL_NODE] = (1u << s->cores) - 1;
		*in[LEVEL_CORE] = 1u << c;
		*in[LEVEL_PACKAGE] = counts_in(s, LEVEL_PACKAGE, c, *in[LEVEL_NODE]);
		*in[LEVEL_DIE] = counts_in(s, LEVEL_DIE, c, *in[LEVEL_PACKAGE]);
		*in[LEVEL_NUMA] = counts_in(s, LEVEL_NUMA, c, *in[LEVEL_DIE]);
		*in[LEVEL_L2] = counts_in(s, LEVEL_L2, c, *in[LEVEL_CORE]);
		*in[LEVEL_L3] = counts_in(s, LEVEL_L3, c, *in[LEVEL_L2]);
		j->within[c] = *in[level];
		if (level == LEVEL_L3 || level == LEVEL_L2)
			j->within[c] = counts_in(s, LEVEL_L3, c, *in[LEVEL_NUMA]);
		if (level == LEVEL_L2)
			j->within[c] = counts_in(s, LEVEL_L2, c, j->within[c]);
	}
}

/* The domains that a set lies in: their number. */
static unsigned domains_of(const unsigned *domain, unsigned set, unsigned *out)
{
	unsigned n = 0;

	for (unsigned c = 0; set >> c; c++) {
		unsigned known = 0;

		if (!(set >> c & 1))
			continue;
		while (known < n && out[known] != domain[c])
			known++;
		if (known == n)
			out[n++] = domain[c];
	}
	return n;
}

/* The least number of tasks that have so many cores' CPUs. */
static unsigned tasks_of(const struct judge *j, unsigned set)
{
	unsigned n = 0;

	while (n * j->task.cpus < bits(set) * j->task.core_cpus)
		n++;
	return n;
}

/* All counts of a set, in the order in which they decide. */
static void judge_cost(const struct judge *j, unsigned set, unsigned *counts)
{
	unsigned in[SMALL], n, tasks = tasks_of(j, set);
	unsigned *touched = counts + 3, *open = touched + SCORE_LEVELS, *broken = open + SCORE_LEVELS,
		 *left = broken + SCORE_LEVELS;

	memset(counts, 0, COUNTS * sizeof(*counts));
	counts[0] = j->level == LEVEL_NODE ? 0 : domains_of(j->within, set, in) - 1;
	for (int l = LEVEL_PACKAGE; l <= LEVEL_L2; l++) {
		unsigned cut = 0, at = l - LEVEL_PACKAGE;

		n = domains_of(j->domain[l], set, in);
		touched[at] = n;
		for (unsigned i = 0; i < n; i++) {
			unsigned rest = bits(in[i] & j->free & ~set);

			open[at] += (in[i] & ~set) != 0;
			broken[at] += rest > 0 && (in[i] & j->free) == in[i];
			left[at] += rest;
			cut += tasks_of(j, in[i] & set);
		}
		if (l != LEVEL_NUMA && l != LEVEL_L3)
			continue;
		counts[l == LEVEL_NUMA ? 1 : 2] = j->task.core_cpus % j->task.cpus ? cut - tasks : 0;
	}
	counts[COUNTS - 1] = bits(j->free & ~set);
}

static int counts_compare(const unsigned *a, const unsigned *b)
{
	for (int i = 0; i < COUNTS; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static void counts_read(const struct score_cost *c, unsigned *counts)
{
	*counts++ = score_count(c, SCORE_BEYOND, LEVEL_NODE);
	*counts++ = score_count(c, SCORE_CUTS, LEVEL_NUMA);
	*counts++ = score_count(c, SCORE_CUTS, LEVEL_L3);
	for (int row = SCORE_TOUCHED; row <= SCORE_LEFT; row++)
		for (int l = LEVEL_PACKAGE; l <= LEVEL_L2; l++)
			*counts++ = score_count(c, row, l);
	*counts = score_count(c, SCORE_LEFT, LEVEL_NODE);
}

static void expect_counts(const struct judge *j, const char *what, unsigned k, const unsigned *wanted,
			  const unsigned *got)
{
	if (!counts_compare(wanted, got))
		return;
	print_error("%s: %s, %u of %#x, tasks of %u, level %s\n", what, j->shape->text, k, j->free, j->task_cores,
		    level_name(j->level));
	for (int i = 0; i < COUNTS; i++)
		print_error("%u:%u ", wanted[i], got[i]);
	fail_msg("wanted:got");
}

/* Shapes at random: levels in any order, some missing, some in part, memory anywhere. */
static unsigned up_to(unsigned n)
{
	return (unsigned) rand() % n;
}

static void text_branch(char *text, size_t size, unsigned depth)
{
	static const char *const types[] = { "Package", "Die", "NUMANode", "L3Cache", "L2Cache", "Group" };
	size_t at = strlen(text);
	unsigned parts;

	if (!up_to(4))
		at += snprintf(text + at, size - at, "[NUMANode] ");
	if (depth >= ROWS(types) || !up_to(5)) {
		snprintf(text + at, size - at, "Core:%u ", 1 + up_to(4));
		return;
	}
	parts = up_to(3) ? 1 : 2 + up_to(2);
	for (unsigned i = 0; i < parts; i++) {
		unsigned type = up_to(4) ? depth + up_to(2) : up_to(ROWS(types));

		at = strlen(text);
		snprintf(text + at, size - at, "%s %s:%u ", parts == 1 ? "" : i ? "|" : "{", types[type % ROWS(types)],
			 1 + up_to(3));
		text_branch(text, size, depth + 1 + up_to(2));
	}
	if (parts > 1)
		strncat(text, "}", size - strlen(text) - 1);
}

static struct shape *shape_random(void)
{
	for (;;) {
		char text[4096] = "";
		struct shape *s;

		text_branch(text, sizeof(text), up_to(2));
		s = strlen(text) + 1 < sizeof(text) ? shape_parse(text, NULL) : NULL;
		if (s && s->cores > 3 && s->cores <= SMALL)
			return s;
		shape_free(s);
	}
}

static unsigned free_random(const struct shape *s)
{
	unsigned all = (1u << s->cores) - 1;

	return up_to(4) ? (unsigned) (rand() | rand()) & all : all;
}

TEST(choose_the_least_of_all)
{
	srand(1);
	for (unsigned round = 0; round < 1500; round++) {
		OWNED(shape_free) struct shape *s = shape_random();
		uint64_t free_cores = free_random(s), chosen;
		unsigned best[SMALL + 1][COUNTS], got[COUNTS], have = bits(free_cores), within = 0;
		struct score_table *t;
		struct score_cost cost;
		struct judge j;

		judge_init(&j, s, free_cores, 1 + up_to(3), up_to(LEVEL_CORE));
		if (round % 2)
			j.task = (struct score_task){ 1 + up_to(9), 1 + up_to(4) };
		memset(best, 0xff, sizeof(best));
		for (unsigned set = j.free; set; set = (set - 1) & j.free) {
			judge_cost(&j, set, got);
			if (counts_compare(got, best[bits(set)]) < 0)
				memcpy(best[bits(set)], got, sizeof(got));
		}
		t = score_table_new(s, &free_cores, &(struct score_need){ .task_cores = j.task_cores, .task = j.task,
									  .level = j.level });
		assert_non_null(t);
		for (unsigned k = 1; k <= have; k++)
			within = best[k][0] ? within : k;
		assert_int_equal(score_table_within(t), within);
		for (unsigned k = 1; k <= have; k++) {
			struct score_need need = { .cores = k, .task_cores = j.task_cores, .task = j.task,
						   .fit = FIT_PREFER, .level = j.level };

			counts_read(score_table_cost(t, k), got);
			expect_counts(&j, "table", k, best[k], got);
			chosen = 0;
			assert_int_equal(score_pick(s, &free_cores, &need, &chosen, &cost), 0);
			assert_int_equal(score_compare(&cost, score_table_cost(t, k)), 0);
			assert_int_equal(chosen & ~free_cores, 0);
			assert_int_equal(bits(chosen), k);
			judge_cost(&j, chosen, got);
			expect_counts(&j, "chosen", k, best[k], got);
			need.fit = FIT_REQUIRE;
			assert_int_equal(score_pick(s, &free_cores, &need, NULL, &cost), best[k][0] > 0);
		}
		assert_null(score_table_cost(t, have + 1));
		score_table_free(t);
	}
}

static bool shape_has(const struct shape *s, enum level level)
{
	for (size_t d = 0; d < s->ndomains; d++)
		if (s->domains[d].level == level)
			return true;
	return false;
}

/* Whether a set, all in one domain, is just as the steps say. */
static bool follows(const struct judge *j, unsigned set, unsigned domain, const struct request_step *step)
{
	unsigned inner[SMALL], in[SMALL], n, cores = 0;

	if (step->level == LEVEL_CORE)
		return bits(set) == step->count;
	if ((step->level == LEVEL_L3 || step->level == LEVEL_L2) && !shape_has(j->shape, step->level))
		return false;
	for (unsigned c = 0; c < j->shape->cores; c++)
		inner[c] = j->domain[step->level][c] & domain;
	n = domains_of(inner, set, in);
	for (unsigned i = 0; i < n; i++) {
		if (i && bits(set & in[i]) != cores)
			return false;
		cores = bits(set & in[i]);
		if (!follows(j, set & in[i], in[i], step + 1))
			return false;
	}
	return n == step->count;
}

static void path_random(struct request_path *path)
{
	*path = (struct request_path){0};
	for (int l = LEVEL_PACKAGE; l < LEVEL_CORE; l++)
		if (!up_to(3))
			path->step[path->steps++] = (struct request_step){ l, up_to(2) ? 1 : 1 + up_to(3) };
	path->step[path->steps++] = (struct request_step){ LEVEL_CORE, 1 + up_to(3) };
}

/* Limits of some domains of several cores, none inside another, in their order. */
static unsigned limits_random(const struct shape *s, struct score_limit *limits)
{
	unsigned n = 0, done = 0;

	for (size_t d = 0; d < s->ndomains; d++) {
		const struct shape_domain *at = &s->domains[d];

		if (at->first < done || at->cores < 2 || at->level == LEVEL_CORE || up_to(2))
			continue;
		limits[n++] = (struct score_limit){ at->first, at->cores, up_to(at->cores) };
		done = at->first + at->cores;
	}
	return n;
}

static bool within_limits(unsigned set, const struct score_limit *limits, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (bits(set >> limits[i].first & ((1u << limits[i].cores) - 1)) > limits[i].most)
			return false;
	return true;
}

/* A set as large as the need, within its limits and along its path. */
static bool satisfies(const struct judge *j, const struct score_need *need, unsigned set)
{
	return bits(set) == need->cores && within_limits(set, need->limits, need->nlimits) &&
	       (!need->path || !need->path->steps || follows(j, set, (1u << j->shape->cores) - 1, need->path->step));
}

/* Of all sets that satisfy the need the one with the least cost is chosen. Returns whether there is one. */
static bool expect_least(const struct judge *j, const struct score_need *need)
{
	uint64_t free_cores = j->free, chosen = 0;
	unsigned best[COUNTS], got[COUNTS];
	bool found = false;
	struct score_cost cost;

	for (unsigned set = j->free; set; set = (set - 1) & j->free) {
		if (!satisfies(j, need, set))
			continue;
		judge_cost(j, set, got);
		if (!found || counts_compare(got, best) < 0)
			memcpy(best, got, sizeof(got));
		found = true;
	}
	if (score_pick(j->shape, &free_cores, need, &chosen, &cost) != !found)
		fail_msg("%s: free %#x, %u cores, %u limits, %u steps: %d", j->shape->text, j->free, need->cores,
			 need->nlimits, need->path ? need->path->steps : 0, found);
	if (!found)
		return false;
	assert_int_equal(chosen & ~free_cores, 0);
	assert_true(satisfies(j, need, chosen));
	counts_read(&cost, got);
	expect_counts(j, "cost", need->cores, best, got);
	judge_cost(j, chosen, got);
	expect_counts(j, "chosen", need->cores, best, got);
	return true;
}

TEST(choose_the_least_of_a_path)
{
	unsigned had = 0;

	srand(2);
	for (unsigned round = 0; round < 6000; round++) {
		OWNED(shape_free) struct shape *s = shape_random();
		unsigned free_cores = free_random(s);
		struct request_path path;
		struct score_need need = { .cores = 1, .task_cores = 1 + up_to(3), .fit = FIT_REQUIRE, .path = &path };
		struct judge j;

		path_random(&path);
		for (unsigned i = 0; i < path.steps; i++)
			need.cores *= path.step[i].count;
		judge_init(&j, s, free_cores, need.task_cores, LEVEL_NODE);
		had += expect_least(&j, &need);
	}
	assert_in_range(had, 1000, 5000);
}

TEST(choose_the_least_within_limits)
{
	unsigned had = 0, refused = 0;

	srand(4);
	for (unsigned round = 0; round < 6000; round++) {
		OWNED(shape_free) struct shape *s = shape_random();
		unsigned free_cores = free_random(s);
		struct score_limit limits[SMALL];
		struct request_path path = {0};
		struct score_need need = { .cores = 1 + up_to(SMALL), .task_cores = 1 + up_to(3), .fit = FIT_PREFER,
					   .level = up_to(LEVEL_CORE), .limits = limits,
					   .nlimits = limits_random(s, limits) };
		struct judge j;
		bool found;

		if (!up_to(3)) {
			path_random(&path);
			need.fit = FIT_REQUIRE;
			need.level = LEVEL_NODE;
			need.path = &path;
			need.cores = request_path_cores(&path);
		}
		judge_init(&j, s, free_cores, need.task_cores, need.level);
		found = expect_least(&j, &need);
		had += found && need.nlimits;
		refused += !found && need.cores <= bits(free_cores);
	}
	assert_in_range(had, 1000, 5000);
	assert_in_range(refused, 300, 5000);
}

TEST(spread_within_limits)
{
	unsigned had = 0;

	srand(5);
	for (unsigned round = 0; round < 6000; round++) {
		OWNED(shape_free) struct shape *s = shape_random();
		uint64_t free_cores = free_random(s), chosen = 0;
		struct score_limit limits[SMALL];
		struct score_need need = { .task_cores = 1 + up_to(3), .fit = FIT_SPREAD, .level = up_to(LEVEL_CORE),
					   .limits = limits, .nlimits = limits_random(s, limits) };
		unsigned tasks = 1 + up_to(5), in[SMALL], n;
		bool can = false;
		struct score_cost cost;
		struct judge j;
		int rc;

		need.cores = tasks * need.task_cores;
		judge_init(&j, s, free_cores, need.task_cores, need.level == LEVEL_NODE ? LEVEL_L3 : need.level);
		rc = score_pick(s, &free_cores, &need, &chosen, &cost);
		for (unsigned set = j.free; set && !can; set = (set - 1) & j.free)
			can = bits(set) == need.cores && within_limits(set, limits, need.nlimits);
		if (need.task_cores == 1 || !can)
			assert_int_equal(rc, !can);
		if (rc == 0) {
			assert_int_equal(bits(chosen & free_cores), need.cores);
			assert_true(within_limits(chosen, limits, need.nlimits));
			n = domains_of(j.within, chosen, in);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(bits(chosen & in[i]) % need.task_cores, 0);
		}
		had += rc == 0 && need.nlimits;
	}
	assert_in_range(had, 1000, 5000);
}

/* Tasks for each domain of the level, one after the other, as score.h says; false when they find no room. */
static bool seat_tasks(const struct judge *j, const unsigned *in, unsigned n, unsigned tasks, unsigned *seated)
{
	memset(seated, 0, n * sizeof(*seated));
	while (tasks--) {
		unsigned best = n, least[3 + LEVEL_L3] = {0};

		for (unsigned i = 0; i < n; i++) {
			unsigned have = bits(in[i] & j->free), key[3 + LEVEL_L3] = { seated[i], SMALL - have },
				 differ = 0;

			if (have / j->task_cores <= seated[i])
				continue;
			for (int l = LEVEL_PACKAGE; l <= LEVEL_L3; l++)
				for (unsigned o = 0; o < n; o++) {
					unsigned around = j->domain[l][__builtin_ctz(in[i])];

					if (o == i || (around & in[o]) == in[o])
						key[2 + l - LEVEL_PACKAGE] += seated[o];
				}
			while (differ < ROWS(key) && key[differ] == least[differ])
				differ++;
			if (best < n && (differ == ROWS(key) || key[differ] > least[differ]))
				continue;
			best = i;
			memcpy(least, key, sizeof(key));
		}
		if (best == n)
			return false;
		seated[best]++;
	}
	return true;
}

static bool seated_so(const unsigned *in, unsigned n, const unsigned *seated, unsigned task_cores, unsigned set)
{
	for (unsigned i = 0; i < n; i++)
		if (bits(set & in[i]) != seated[i] * task_cores)
			return false;
	return true;
}

static void expect_spread(const struct judge *j, unsigned tasks, const unsigned *in, unsigned n, const unsigned *seated,
			  unsigned chosen, const struct score_cost *cost)
{
	unsigned best[COUNTS], got[COUNTS], most = 0, room = 0;
	bool found = false;

	for (unsigned set = j->free; set; set = (set - 1) & j->free) {
		if (!seated_so(in, n, seated, j->task_cores, set))
			continue;
		judge_cost(j, set, got);
		if (!found || counts_compare(got, best) < 0)
			memcpy(best, got, sizeof(got));
		found = true;
	}
	assert_true(found);
	judge_cost(j, chosen, got);
	expect_counts(j, "spread", tasks, best, got);
	for (most = 0; room < tasks; most++) {
		room = 0;
		for (unsigned i = 0; i < n; i++) {
			unsigned holds = bits(in[i] & j->free) / j->task_cores;

			room += holds < most + 1 ? holds : most + 1;
		}
	}
	best[0] = most - 1;
	for (int l = LEVEL_PACKAGE; l <= LEVEL_L2; l++) {
		unsigned touched[SMALL], count = domains_of(j->domain[l], chosen, touched),
					 *left = &best[COUNTS - 2 - LEVEL_L2 + l];

		*left = 0;
		for (unsigned i = 0; i < count; i++)
			*left += bits(touched[i] & ~j->free);
	}
	best[COUNTS - 1] = j->shape->cores - bits(j->free);
	counts_read(cost, got);
	expect_counts(j, "spread's cost", tasks, best, got);
}

TEST(spread_as_far_as_can_be)
{
	unsigned had = 0;

	srand(3);
	for (unsigned round = 0; round < 4000; round++) {
		OWNED(shape_free) struct shape *s = shape_random();
		uint64_t free_cores = free_random(s), chosen = 0;
		enum level level = up_to(LEVEL_CORE);
		struct score_need need = { .task_cores = 1 + up_to(3), .fit = FIT_SPREAD, .level = level };
		unsigned tasks = 1 + up_to(5), in[SMALL], seated[SMALL], n;
		bool can;
		struct score_cost cost;
		struct judge j;

		need.cores = tasks * need.task_cores;
		judge_init(&j, s, free_cores, need.task_cores, level == LEVEL_NODE ? LEVEL_L3 : level);
		n = domains_of(j.within, j.free, in);
		can = seat_tasks(&j, in, n, tasks, seated);
		assert_int_equal(score_pick(s, &free_cores, &need, &chosen, &cost), !can);
		if (can) {
			assert_int_equal(chosen & ~free_cores, 0);
			if (!seated_so(in, n, seated, need.task_cores, chosen))
				fail_msg("%s: free %#x, %u tasks of %u, level %s: %#x", s->text, j.free, tasks,
					 need.task_cores, level_name(level), (unsigned) chosen);
			expect_spread(&j, tasks, in, n, seated, chosen, &cost);
		}
		had += can;
	}
	assert_in_range(had, 1500, 3500);
}

TESTS_MAIN(NULL, NULL)
