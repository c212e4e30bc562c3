/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_tree.h"
#include "score/verdict.h"
#include "table.h"

static struct verdict placed = {
	.outcome = VERDICT_PLACED,
	.request = { .fit = FIT_PREFER, .level = LEVEL_L3 },
	.nodes = 2, .tasks = 8, .task_cores = 1, .candidates = 12, .room = 9,
	.free_unknown = 1, .lacks = "die", .beside = "cn7", .decided_row = SCORE_OPEN, .decided_level = LEVEL_L3,
	.cores = "cn[1-2]:0-7 cn3:8-11",
};
static const struct verdict waits = {
	.outcome = VERDICT_WAITS,
	.request = { .fit = FIT_REQUIRE, .path = { 2, { { LEVEL_L3, 1 }, { LEVEL_CORE, 12 } } } },
	.nodes = 1, .tasks = 4, .task_cores = 3, .candidates = 4,
	.decided_row = -1, .decided_level = -1,
	.reason = "no L3 has 12 cores",
};
static const struct verdict left = {
	.outcome = VERDICT_LEFT, .request = { .fit = FIT_OFF }, .decided_row = -1, .decided_level = -1,
	.reason = "it says so",
};
static struct verdict spread = {
	.outcome = VERDICT_PLACED, .request = { .fit = FIT_SPREAD }, .nodes = 1, .tasks = 2, .task_cores = 65535,
	.candidates = 1, .room = 1, .decided_row = -1, .decided_level = -1,
	.cores = "gpu_1:0-65535 ...",
};
static const struct verdict equal = {
	.outcome = VERDICT_PLACED, .request = { .fit = FIT_PREFER }, .beside = "cn1", .decided_row = -1,
	.decided_level = -1,
};
static const struct verdict beyond = {
	.outcome = VERDICT_PLACED, .request = { .fit = FIT_PREFER }, .beside = "cn1", .decided_row = SCORE_BEYOND,
	.decided_level = LEVEL_NODE,
};

static const struct {
	const struct verdict *verdict;
	const char *line;
} lines[] = {
	{ &placed, "topiary:1 placed fit=prefer level=l3 nodes=2 tasks=8x1 candidates=12 room=9 beyond=1 cuts=1,2 "
	  "touched=1,1,1,2,8 left=24,8,8,8,0,0 free_unknown=1 lacks=die beside=cn7 decided=open:l3 "
	  "cores=cn[1-2]:0-7;cn3:8-11 end" },
	{ &waits, "topiary:1 waits fit=require request=/l3=1/core=12 nodes=1 tasks=4x3 candidates=4"
	  " reason=no_L3_has_12_cores end" },
	{ &left, "topiary:1 left fit=off reason=it_says_so end" },
	{ &spread, "topiary:1 placed fit=spread nodes=1 tasks=2x65535 candidates=1 room=1 touched=65535,0,0,0,1 "
	  "cores=gpu_1:0-65535;... end" },
	{ &equal, "topiary:1 placed fit=prefer beside=cn1 end" },
	{ &beyond, "topiary:1 placed fit=prefer beside=cn1 decided=beyond end" },
};

static const struct {
	struct verdict *verdict;
	enum score_row row;
	enum level level;
	unsigned count;
} counts[] = {
	{ &placed, SCORE_BEYOND, LEVEL_NODE, 1 }, { &placed, SCORE_CUTS, LEVEL_NUMA, 1 },
	{ &placed, SCORE_CUTS, LEVEL_L3, 2 }, { &placed, SCORE_TOUCHED, LEVEL_PACKAGE, 1 },
	{ &placed, SCORE_TOUCHED, LEVEL_DIE, 1 },
	{ &placed, SCORE_TOUCHED, LEVEL_NUMA, 1 },
	{ &placed, SCORE_TOUCHED, LEVEL_L3, 2 }, { &placed, SCORE_TOUCHED, LEVEL_L2, 8 },
	{ &placed, SCORE_LEFT, LEVEL_NODE, 24 }, { &placed, SCORE_LEFT, LEVEL_PACKAGE, 8 },
	{ &placed, SCORE_LEFT, LEVEL_DIE, 8 }, { &placed, SCORE_LEFT, LEVEL_NUMA, 8 },
	{ &spread, SCORE_TOUCHED, LEVEL_PACKAGE, 65535 }, { &spread, SCORE_TOUCHED, LEVEL_L2, 1 },
};

FIXTURE(setup)
{
	for (size_t i = 0; i < ROWS(counts); i++)
		cost_set(&counts[i].verdict->cost, counts[i].row, counts[i].level, counts[i].count);
	return 0;
}

static struct buf line_of(const struct verdict *v)
{
	struct buf b = {0};

	verdict_write(v, &b);
	assert_false(b.failed);
	return b;
}

static void assert_same(const struct verdict *a, const struct verdict *b)
{
	FREED(buf_free) struct buf one = line_of(a), other = line_of(b);

	assert_string_equal(one.data, other.data);
	assert_int_equal(a->decided_row, b->decided_row);
	assert_int_equal(a->decided_level, b->decided_level);
	assert_string_equal(a->cores, b->cores);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(score_compare(&a->cost, &b->cost), 0);
}

TEST(reads_what_it_wrote)
{
	for (size_t i = 0; i < ROWS(lines); i++) {
		FREED(buf_free) struct buf b = line_of(lines[i].verdict);
		struct verdict v;

		assert_string_equal(b.data, lines[i].line);
		if (verdict_read(b.data, &v, &err))
			fail_msg("row %zu: %s", i, err.text);
		assert_same(&v, lines[i].verdict);
	}
}

/* The line among text of others: its start and length. */
TEST(finds_a_line)
{
	static const struct {
		const char *before, *line, *after;
	} rows[] = {
		{ "", "topiary:1 left fit=off end", "" },
		{ "burst buffer: staged in, topiary: end\n", "topiary:1 left fit=off end",
		  "\n11/21/26 lua: the end of it" },
		{ "atopiary:1 left fit=off end ", "topiary:1 left fit=off end", " topiary:1 placed fit=prefer end" },
		{ "topiary:1 left fit=o\n", "topiary:1 waits fit=require end", " end" },
		{ "topiary:1 left fit=off others say end ", "topiary:1 waits fit=require end", "" },
		{ "topiary:1 topiary:1 ", "topiary:1 left end", "" },
		{ "", "topiary:27 anything new=1 end", "" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char comment[512];
		size_t start = 0, len = 0;

		snprintf(comment, sizeof(comment), "%s%s%s", rows[i].before, rows[i].line, rows[i].after);
		if (verdict_find(comment, &start, &len) || start != strlen(rows[i].before) ||
		    len != strlen(rows[i].line))
			fail_msg("row %zu: at %zu, %zu bytes: '%.*s'", i, start, len, (int) len, comment + start);
	}
}

TEST(finds_no_line)
{
	static const char *const rows[] = {
		NULL, "", "end", "topiary", "topiary: placed fit=prefer end", "topiary:x placed end",
		"topiary :1 placed end", "topiary:1", "topiary:1 end", "topiary:1 placed fit=prefer",
		"topiary:1 placed fit=prefer ended", "topiary:1 placed fit end",
	};
	size_t start, len;

	for (size_t i = 0; i < ROWS(rows); i++)
		if (!verdict_find(rows[i], &start, &len))
			fail_msg("row %zu has one", i);
}

TEST(reads_among_text_of_others)
{
	static const char *const rows[] = {
		"topiary:1 waits fit=require level=l3 room=2 reason=no_room end",
		"x topiary:1 waits fit=require level=l3 room=2 reason=no_room end y",
		"\ntopiary:1\twaits level=L3Cache reason=no_room fit=Require room=002\nend\n",
		"topiary:1 waits fit=require\ntopiary:1 waits fit=require level=l3 room=2 reason=no_room end",
		"topiary:1 waits fit=require level=l3 shade=deep room=2 rooms=7 =7 reason=no_room nodes=0 end",
		"topiary:1 waits fit=require level=l3 room=2 reason=no_room end topiary:1 left fit=off end",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct verdict v;

		if (verdict_read(rows[i], &v, &err))
			fail_msg("row %zu: %s", i, err.text);
		assert_int_equal(v.outcome, VERDICT_WAITS);
		assert_int_equal(v.request.fit, FIT_REQUIRE);
		assert_int_equal(v.request.level, LEVEL_L3);
		assert_int_equal(v.room, 2);
		assert_int_equal(v.nodes, 0);
		assert_string_equal(v.reason, "no room");
	}
}

static void is_read_as(int rc, const char *comment, const char *error)
{
	struct verdict v = left;
	struct err e = {"-"};

	if (verdict_read(comment, &v, &e) != rc)
		fail_msg("'%s' is not %d", comment ? comment : "", rc);
	assert_string_equal(e.text, error);
	assert_same(&v, &left);
}

static void comment_refused(const char *comment, const char *error)
{
	is_read_as(-1, comment, error);
}

TEST(refuses)
{
	is_read_as(1, NULL, "-");
	is_read_as(1, "", "-");
	is_read_as(1, "run 7 topiary: end", "-");
	comment_refused("topiary:1 left reason=\033[2J end", "topiary:1: 'reason' cannot be read");
	comment_refused("topiary:1 placed cores=cn\377:0 end", "topiary:1: 'cores' cannot be read");
	cases_each("refused/verdicts.txt", comment_refused);
}

/* A line truncated anywhere gives an error or nothing, never a part of its content. */
TEST(truncated_lines_are_errors)
{
	FREED(buf_free) struct buf b = line_of(&placed);

	for (size_t len = 0; len < b.len; len++) {
		OWNED(free) char *cut = strndup(b.data, len);
		struct verdict v;

		assert_int_equal(verdict_read(cut, &v, NULL), len < strlen("topiary:1") ? 1 : -1);
	}
}

/* However many nodes there are, the line is short, and lists complete nodes. */
TEST(long_lines_keep_whole_nodes)
{
	struct verdict v = placed, got;
	struct buf b;
	size_t len = 0;

	for (unsigned i = 0; len + 16 < sizeof(v.cores); i++)
		len += snprintf(v.cores + len, sizeof(v.cores) - len, "%scn%u:0-7", i ? " " : "", i);
	for (size_t name = 1; name < sizeof(v.beside); name++) {
		memset(v.beside, 'n', name);
		v.beside[name] = '\0';
		b = line_of(&v);
		assert_true(b.len <= VERDICT_TEXT);
		assert_true(b.len > VERDICT_TEXT - 2 * strlen("cn00:0-7 "));
		assert_int_equal(verdict_read(b.data, &got, NULL), 0);
		len = strlen(got.cores) - strlen(" ...");
		assert_string_equal(got.cores + len, " ...");
		assert_memory_equal(got.cores, v.cores, len);
		assert_int_equal(v.cores[len], ' ');
		buf_free(&b);
	}
	memset(v.cores, 'n', sizeof(v.cores) - 1);
	b = line_of(&v);
	assert_non_null(strstr(b.data, " cores=... end"));
	buf_free(&b);
}

/* The longest possible line. */
TEST(is_never_long)
{
	struct verdict v = {
		.outcome = VERDICT_PLACED, .nodes = 100000, .tasks = 65535, .task_cores = 65535, .candidates = 100000,
		.room = 100000, .decided_row = SCORE_TOUCHED, .decided_level = LEVEL_PACKAGE, .gpus = 1000000,
		.gpus_far = 1000000, .cores_far = 100000000, .lacks = "die,l3",
	};
	struct buf b;

	assert_int_equal(request_set(&v.request, "topo-request", "/package=1/die=1/numa=1/l3=1/l2=1/core=65536", NULL),
			 0);
	memset(&v.cost, 0xff, sizeof(v.cost));
	memset(v.beside, 'n', sizeof(v.beside) - 1);
	memset(v.cores, 'n', sizeof(v.cores) - 1);
	b = line_of(&v);
	assert_true(b.len <= VERDICT_TEXT);
	buf_free(&b);
	memset(&v.cost, 0, sizeof(v.cost));
	memset(v.reason, 'n', sizeof(v.reason) - 1);
	v.outcome = VERDICT_WAITS;
	b = line_of(&v);
	assert_true(b.len <= VERDICT_TEXT);
	buf_free(&b);
}

/* It cannot contain SQL, terminal control or a second line. */
TEST(replaces_special_characters)
{
	struct verdict v = left, got;
	FREED(buf_free) struct buf b;

	snprintf(v.reason, sizeof(v.reason), "--topo-level='a\"b`c\\d|e\nf\033g\xc3\xa4: topo_fit = end");
	b = line_of(&v);
	assert_string_equal(b.data, "topiary:1 left fit=off reason=--topo-level=?a?b?c?d?e?f?g??:_topo_fit_=_end end");
	assert_int_equal(verdict_read(b.data, &got, NULL), 0);
	assert_string_equal(got.reason, "--topo-level=?a?b?c?d?e?f?g??: topo fit = end");
}

TEST(appends_to_text_of_others)
{
	FREED(buf_free) struct buf b = {0};
	struct verdict v;
	size_t start, len;

	buf_puts(&b, "others\n");
	verdict_write(&placed, &b);
	buf_puts(&b, "\nothers");
	assert_int_equal(verdict_find(b.data, &start, &len), 0);
	assert_int_equal(start, strlen("others\n"));
	assert_int_equal(start + len, b.len - strlen("\nothers"));
	assert_int_equal(verdict_read(b.data, &v, NULL), 0);
	assert_same(&v, &placed);
}

/* The cost of a choice reads back exactly. */
TEST(keeps_costs)
{
	struct shape *s = shape_parse("Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", NULL);
	struct score_need need = { .cores = 6, .task_cores = 3, .fit = FIT_PREFER, .level = LEVEL_L3 };
	struct verdict v = left, got;
	uint64_t cores = 0xfff7;
	FREED(buf_free) struct buf b;

	assert_non_null(s);
	assert_int_equal(score_pick(s, &cores, &need, NULL, &v.cost), 0);
	assert_int_equal(score_count(&v.cost, SCORE_BEYOND, LEVEL_L3), 1);
	b = line_of(&v);
	assert_int_equal(verdict_read(b.data, &got, NULL), 0);
	assert_memory_equal(&got.cost, &v.cost, sizeof(v.cost));
	shape_free(s);
}

TESTS_MAIN(setup, NULL)
