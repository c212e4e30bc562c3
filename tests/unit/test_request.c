/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/request.h"
#include "table.h"

/* "prefer l3" or "require /package=1/core=4". */
static void told(const struct request *r, char *out, size_t size)
{
	int n = snprintf(out, size, "%s ", fit_name(r->fit));

	if (r->path.steps)
		request_path_text(&r->path, out + n, size - n);
	else
		snprintf(out + n, size - n, "%s", level_name(r->level));
	if (r->memory != FIT_OFF)
		snprintf(out + strlen(out), size - strlen(out), " memory %s", fit_name(r->memory));
}

static void assert_request(const struct request *r, const char *wanted, size_t row)
{
	char text[256];

	told(r, text, sizeof(text));
	if (strcmp(text, wanted))
		fail_msg("row %zu: '%s' is not '%s'", row, text, wanted);
}

static const struct request site = { .fit = FIT_PREFER, .level = LEVEL_NODE };

TEST(sets)
{
	static const struct {
		struct {
			const char *name, *value;
		} set[4];
		const char *wanted;
	} rows[] = {
		{ { { NULL, NULL } }, "prefer node" },
		{ { { "topo-fit", "OFF" } }, "off node" },
		{ { { "topo-fit", "require" }, { "topo-level", "L3Cache" } }, "require l3" },
		{ { { "topo-level", "socket" }, { "topo-fit", "Spread" } }, "spread package" },
		{ { { "topo-level", "numa" }, { "topo-level", "node" } }, "prefer node" },
		{ { { "topo-fit", "off" }, { "topo-fit", "prefer" } }, "prefer node" },
		{ { { "TopoFit", "off" }, { "TopoLevel", "die" }, { "topo-fit", "require" } }, "require die" },
		{ { { "topo-request", "/core=1" } }, "require /core=1" },
		{ { { "topo-mem", "Require" }, { "topo-request", "/core=1" } }, "require /core=1 memory require" },
		{ { { "TopoMem", "prefer" }, { "topo-fit", "off" } }, "off node memory prefer" },
		{ { { "topo-mem", "require" }, { "topo-mem", "off" } }, "prefer node" },
		{ { { "topo-request", "/package=1/l3=2/core=4" } }, "require /package=1/l3=2/core=4" },
		{ { { "topo-request", "/Socket=2/DIE=1/numanode=1/l3cache=1/l2cache=2/core=01" } },
		  "require /package=2/die=1/numa=1/l3=1/l2=2/core=1" },
		{ { { "topo-request", "/package=64/core=1024" } }, "require /package=64/core=1024" },
		{ { { "topo-request", "/core:performance=4" } }, "require /core:performance=4" },
		{ { { "topo-request", "/l2=2/CORE:Efficiency=2" } }, "require /l2=2/core:efficiency=2" },
		{ { { "topo-request", "/core:efficiency=4" }, { "topo-request", "/core=2" } }, "require /core=2" },
		{ { { "topo-request", "/l3=2/core=4" }, { "topo-fit", "prefer" }, { "topo-level", "l2" } },
		  "require /l3=2/core=4" },
		{ { { "topo-fit", "off" }, { "topo-level", "l2" }, { "topo-request", "/l3=2/core=4" } },
		  "require /l3=2/core=4" },
		{ { { "topo-request", "/l3=2/core=4" }, { "topo-request", "/numa=1/core=2" } },
		  "require /numa=1/core=2" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct request r = site;

		for (size_t k = 0; k < 4 && rows[i].set[k].name; k++)
			if (request_set(&r, rows[i].set[k].name, rows[i].set[k].value, &err))
				fail_msg("row %zu: %s", i, err.text);
		assert_request(&r, rows[i].wanted, i);
	}
}

static void setting_refused(const char *name, const char *value, const char *error)
{
	struct request r = { .fit = FIT_OFF, .level = LEVEL_DIE };
	struct err e = {""};

	if (!request_set(&r, name, value, &e))
		fail_msg("%s=%s is accepted", name, value);
	assert_string_equal(e.text, error);
	assert_request(&r, "off die", 0);
}

TEST(refuses)
{
	setting_refused("topo-fit", "prefer ",
			"--topo-fit=prefer : invalid value, expected one of: off, prefer, require, spread");
	setting_refused("topo-level", "l3\n\033[31mred\377",
			"--topo-level=l3??[31mred?: invalid value, expected one of: package, die, numa, l3, l2, node");
	pairs_each("refused/requests.txt", setting_refused);
}

TEST(reads_comments)
{
	static const struct {
		const char *comment, *wanted;
	} rows[] = {
		{ NULL, "prefer node" },
		{ "", "prefer node" },
		{ "topo-fit=require", "require node" },
		{ "run 7, topo-fit=require topo-level=l3", "require l3" },
		{ "--topo-fit=require;--topo-level=l3;what else", "require l3" },
		{ "\n\ttopo-level=numa\r\n", "prefer numa" },
		{ "topo-fit=off topo-fit=spread", "spread node" },
		{ "see topo-request=/package=1/l3=2/core=4, please", "require /package=1/l3=2/core=4" },
		{ "topo-fit topo-fit:off =off topo-fit; topo-", "prefer node" },
		{ "mytopo-fit=off topo-fits=off -topo-fit=off ---topo-fit=off -- --topo", "prefer node" },
		{ "TopoFit=off topolevel=l3 TopoLevel=l3", "prefer node" },
		{ "\xc3\xa4 'topo-fit=off' \"topo-level=l3\"", "prefer node" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct request r = site;

		if (request_comment(&r, rows[i].comment, &err))
			fail_msg("row %zu: %s", i, err.text);
		assert_request(&r, rows[i].wanted, i);
	}
}

TEST(refuses_comments)
{
	static const struct {
		const char *comment, *error;
	} rows[] = {
		{ "topo-fit=", "--topo-fit=: invalid value, expected one of: off, prefer, require, spread" },
		{ "topo-level=l3 topo-fit=must", "--topo-fit=must: invalid value, expected one of: off, prefer,"
		  " require, spread" },
		{ "topo-fit=must topo-fit=off", "--topo-fit=must: invalid value, expected one of: off, prefer, require,"
		  " spread" },
		{ "x,--topo-level=l3\033[2J,y",
		  "--topo-level=l3?[2J: invalid value, expected one of: package, die, numa, l3, l2, node" },
		{ "topo-level=l3=2", "--topo-level=l3=2: invalid value, expected one of: package, die, numa, l3, l2,"
		  " node" },
		{ "topo-request=/l3=1", "--topo-request=/l3=1: the last level must be core" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct request r = { .fit = FIT_OFF, .level = LEVEL_DIE };
		struct err e = {""};

		if (!request_comment(&r, rows[i].comment, &e))
			fail_msg("row %zu is accepted", i);
		assert_string_equal(e.text, rows[i].error);
		assert_request(&r, "off die", i);
	}
}

TEST(reports_unknown_words_of_comments)
{
	static const struct {
		const char *comment, *word;	/* NULL: none is reported */
	} rows[] = {
		{ NULL, NULL },
		{ "run 7, topo-fit=off --topo-level=l3;topo-mem=prefer", NULL },
		{ "mytopo-fit=off -topo-x ---topo-x topo Topo-fit=off TopoFit=off", NULL },
		{ "topo-fit=off, topo-foo", "topo-foo" },
		{ "--topo-place=compact", "--topo-place=compact" },
		{ "topo-fit;topo-x", "topo-fit" },
		{ "topo-", "topo-" },
		{ "topo-l3\033[2J", "topo-l3?[2J" },
	};
	char wanted[256];

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		assert_int_equal(request_comment_unknown(rows[i].comment, &e), rows[i].word ? -1 : 0);
		snprintf(wanted, sizeof(wanted), "--comment: '%s' has no effect, expected topo-fit=, topo-level=,"
			 " topo-request= or topo-mem=", rows[i].word);
		assert_string_equal(e.text, rows[i].word ? wanted : "");
	}
}

/* Values and comments of any length get a complete error message. */
TEST(long_values_get_an_error)
{
	static const char *const begin[] = { "topo-fit=", "topo-level=l3", "topo-request=/core=",
					     "topo-request=/core=4/l2=1/core=" };
	enum { LONG = 1 << 20 };
	OWNED(free) char *text = malloc(LONG + 64);

	assert_non_null(text);
	for (size_t i = 0; i < ROWS(begin); i++) {
		struct request r = site;
		struct err e = {""};
		char *value;

		snprintf(text, 64, "%s", begin[i]);
		memset(text + strlen(begin[i]), '1', LONG);
		text[strlen(begin[i]) + LONG] = '\0';
		assert_int_equal(request_comment(&r, text, &e), -1);
		assert_true(strlen(e.text) < 200);
		value = strchr(text, '=');
		*value++ = '\0';
		assert_int_equal(request_set(&r, text, value, &e), -1);
		assert_true(strlen(e.text) < 200);
		assert_request(&r, "prefer node", i);
	}
	memset(text, 'x', LONG);
	strcpy(text + LONG, " topo-fit=off");
	struct request r = site;
	assert_int_equal(request_comment(&r, text, NULL), 0);
	assert_request(&r, "off node", 0);
}

TEST(writes_paths)
{
	struct request r = site;
	char text[32] = "before";

	assert_int_equal(request_path_cores(&r.path), 0);
	assert_int_equal(request_path_text(&r.path, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(request_set(&r, "topo-request", "/package=2/l3=3/core=4", NULL), 0);
	assert_int_equal(request_path_cores(&r.path), 24);
	assert_int_equal(request_path_text(&r.path, NULL, 0), 22);
	assert_int_equal(request_path_text(&r.path, text, 22), 22);
	assert_string_equal(text, "/package=2/l3=3/core=");
	assert_int_equal(request_path_text(&r.path, text, 5), 22);
	assert_string_equal(text, "/pac");
	assert_int_equal(request_path_text(&r.path, text, 23), 22);
	assert_string_equal(text, "/package=2/l3=3/core=4");
}

TESTS_MAIN(NULL, NULL)
