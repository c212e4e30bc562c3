/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/err.h"

/*
 * A local variable that is freed where its block ends: FREED for what is freed by its address; OWNED for a pointer,
 * after OWNS of its function. Cases that fail leave both.
 *
 *	OWNS(struct shape *, shape_free)
 *	...
 *	FREED(buf_free) struct buf text = {0};
 *	OWNED(shape_free) struct shape *s = shape_parse(...);
 */
#define FREED(free_it) __attribute__((cleanup(free_it)))
#define OWNED(free_it) __attribute__((cleanup(free_it##_owned)))
#define OWNS(type, free_it) \
	static inline void free_it##_owned(type *p) \
	{ \
		if (*p) \
			free_it(*p); \
	}

static inline void free_owned(void *p)
{
	free(*(void **) p);
}

/* A fixture: returns 0, or -1. */
#define FIXTURE(name) static int name(void **state __attribute__((unused)))

/* Below a folder of the program's, which is removed with all that is in it when the program ends. */
static struct {
	char root[32];
	pid_t owner;
	unsigned n;
} folders;

static inline void folders_remove(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folders.root);
	if (folders.owner == getpid() && system(command))
		print_error("%s: not removed\n", folders.root);
}

/* "/tmp/.../1" and so on: new, and others may enter it. The caller frees it, or does not. */
static inline char *folder_new(void)
{
	char *name;

	if (!folders.n++) {
		strcpy(folders.root, "/tmp/topiary-test-XXXXXX");
		folders.owner = getpid();
		assert_true(mkdtemp(folders.root) && !chmod(folders.root, 0755) && !atexit(folders_remove));
	}
	assert_true(asprintf(&name, "%s/%u", folders.root, folders.n) > 0 && !mkdir(name, 0755));
	return name;
}

/* A shell's commands, in a folder. */
static inline void shell_in(const char *folder, const char *commands)
{
	char *line;

	assert_true(asprintf(&line, "cd '%s' && %s", folder, commands) > 0);
	if (system(line))
		fail_msg("%s", line);
	free(line);
}

/*
 * The files of a pattern below the cache that packaging/setup fills; NULL after the last. If there is none, the case is
 * skipped. CORPUS: hwloc's collection of real machines.
 */
#define CORPUS "src/hwloc-*/tests/hwloc/xml/"

static inline char **cached(const char *pattern)
{
	const char *cache = getenv("TOPIARY_CACHE");
	glob_t found;	/* stays */
	char *path;

	assert_true(asprintf(&path, "%s/%s", cache ? cache : ".cache", pattern) > 0);
	if (glob(path, 0, NULL, &found)) {
		print_message("no %s: packaging/setup brings it\n", path);
		skip();
	}
	free(path);
	return found.gl_pathv;
}

/*
 * Each case of a file below tests/data, by which the current folder must be the checkout: the lines of a text, the last
 * one without its newline if it ends in a backslash, and below them "=> " and what is expected of the text.
 */
static inline void cases_each(const char *name, void (*test)(const char *text, const char *expected))
{
	char path[128], line[4096], text[65536] = "";
	size_t len = 0, n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/%s", name);
	assert_non_null(f = fopen(path, "re"));
	while (fgets(line, sizeof(line), f)) {
		assert_true(len + strlen(line) < sizeof(text));
		if (!strncmp(line, "=> ", 3)) {
			line[strcspn(line, "\n")] = '\0';
			test(text, line + 3);
			text[len = 0] = '\0';
			n++;
			continue;
		}
		len += sprintf(text + len, "%s", line);
		if (len > 1 && !strcmp(text + len - 2, "\\\n"))
			text[len -= 2] = '\0';
	}
	fclose(f);
	assert_true(n && !len);
}

static void (*pair_test)(const char *name, const char *value, const char *expected) __attribute__((unused));

static inline void pair_split(const char *text, const char *expected)
{
	char *name = strndup(text, strcspn(text, "\n")), *value = name;

	strsep(&value, "=");
	pair_test(name, value, expected);
	free(name);
}

/* Such cases whose texts are lines NAME=VALUE. */
static inline void pairs_each(const char *file,
			      void (*test)(const char *name, const char *value, const char *expected))
{
	pair_test = test;
	cases_each(file, pair_split);
}

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* What the last call said; a case that reads it after calls that differ has one of its own, which begins empty. */
static struct err err __attribute__((unused));

/* Of calls that return 0, and of those that return what they made; err says why they did not. */
#define assert_ok(failed) do { if (failed) fail_msg("%s", err.text); } while (0)
#define assert_made(pointer) assert_ok(!(pointer))

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
