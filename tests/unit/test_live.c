/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "monitor/live.h"
#include "table.h"
#include "topology.h"
#include "trace/block.h"

OWNS(struct live_writer *, live_writer_free)

#define READER 65534u
#define SEQUENCE_AT 32		/* live.h */

static char path[64];
static int dir;

/* Two PUs, a counter and a gauge of each. */
static struct trace_head head_of(int64_t start)
{
	struct trace_head h = { .node = "cn1", .start = start, .period = 1000 };
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("Core:2 PU:1");

	assert_int_equal(trace_head_tree(&h, t, NULL, &err), 0);
	h.events = calloc(2, sizeof(*h.events));
	h.nevents = 2;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(h.events[i].name, sizeof(h.events[i].name), "event%u", i);
		h.events[i].kind = i ? TRACE_GAUGE : TRACE_COUNTER;
		h.events[i].level = trace_head_level(&h, "PU");
	}
	assert_int_equal(trace_head_check(&h, &err), 0);
	return h;
}

static struct live_writer *writer(const struct trace_head *h)
{
	struct live_writer *w;

	if (geteuid())
		skip();		/* pages are root's */
	w = live_writer_new(dir, h, READER, &err);
	assert_made(w);
	return w;
}

static struct live_reader *reader(void)
{
	struct live_reader *r = live_reader_open(path, &err);

	assert_made(r);
	return r;
}

static void tick(struct live_writer *w, uint64_t time, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t values[] = { a, b, c, d };

	live_writer_tick(w, time, values);
}

static void expect(struct live_reader *r, int rc, uint64_t from, uint64_t until, const uint64_t *expected)
{
	uint64_t values[4], begin = 0, end = 0;

	assert_int_equal(live_read(r, values, &begin, &end), rc);
	if (rc != 1)
		return;
	assert_int_equal(begin, from);
	assert_int_equal(end, until);
	assert_memory_equal(values, expected, sizeof(values));
}

TEST(reader_at_its_own_pace_loses_nothing)
{
	FREED(trace_head_free) struct trace_head h = head_of(1);
	OWNED(live_writer_free) struct live_writer *w = writer(&h);
	struct live_reader *r;

	tick(w, 10, 1, 2, 30, 40);
	r = reader();
	assert_int_equal(r->head.pus, 2);
	assert_string_equal(r->head.node, "cn1");
	expect(r, 0, 0, 0, NULL);
	expect(r, 0, 0, 0, NULL);
	tick(w, 20, 5, 6, 31, 41);
	expect(r, 1, 10, 20, (const uint64_t[]){ 5, 6, 31, 41 });
	tick(w, 30, 100, 200, 32, 42);
	tick(w, 40, 1000, 2000, 33, 43);
	expect(r, 1, 20, 40, (const uint64_t[]){ 1100, 2200, 33, 43 });
	tick(w, 50, 1, TRACE_ABSENT, 34, TRACE_ABSENT);
	tick(w, 60, 1, 1, 35, 45);
	expect(r, 1, 40, 60, (const uint64_t[]){ 2, TRACE_ABSENT, 35, TRACE_ABSENT });
	tick(w, 70, 1, 1, 36, 46);
	expect(r, 1, 60, 70, (const uint64_t[]){ 1, 1, 36, 46 });
	unlinkat(dir, LIVE_FILE, 0);
	expect(r, -1, 0, 0, NULL);
	live_reader_close(r);
}

/* A monitor that is killed leaves its page, perhaps within a tick. */
TEST(killed_writer_goes_on)
{
	FREED(trace_head_free) struct trace_head h = head_of(1), other = head_of(2);
	struct live_writer *w = writer(&h);
	const uint64_t odd = 7;
	struct live_reader *r;
	struct stat before, after;
	int fd;

	tick(w, 10, 1, 1, 1, 1);
	r = reader();
	expect(r, 0, 0, 0, NULL);
	live_writer_free(w);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &odd, sizeof(odd), SEQUENCE_AT), sizeof(odd));
	close(fd);
	expect(r, 0, 0, 0, NULL);
	assert_int_equal(stat(path, &before), 0);
	w = writer(&h);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	tick(w, 30, 3, 4, 5, 6);
	expect(r, 1, 10, 30, (const uint64_t[]){ 3, 4, 5, 6 });
	live_writer_free(w);
	/* The page of another trace is not continued: its reader learns that it is gone. */
	w = writer(&other);
	expect(r, -1, 0, 0, NULL);
	live_reader_close(r);
	live_writer_free(w);
}

/* Can a user read, or write, it? */
static bool user_can(uid_t uid, int how)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(uid) || setuid(uid))
			_exit(2);
		_exit(open(path, how) < 0);
	}
	waitpid(pid, &status, 0);
	return !status;
}

TEST(one_user_reads_and_nobody_writes)
{
	FREED(trace_head_free) struct trace_head h = head_of(1);
	OWNED(live_writer_free) struct live_writer *w = writer(&h);

	assert_true(user_can(READER, O_RDONLY));
	assert_false(user_can(READER, O_RDWR));
	assert_false(user_can(READER - 1, O_RDONLY));
}

TEST(damaged_page_is_an_error)
{
	static const struct { off_t at; uint64_t value; } rows[] = {
		{ 0, 1 }, { 8, 1 }, { 8, UINT64_MAX }, { 16, 0 }, { 16, UINT64_MAX }, { 24, 0 }, { 24, UINT64_MAX },
		{ 24, 3 }, { 64, 1 },
	};
	FREED(trace_head_free) struct trace_head h = head_of(1);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		OWNED(live_writer_free) struct live_writer *w = writer(&h);
		int fd = open(path, O_RDWR);

		assert_int_equal(pwrite(fd, &rows[i].value, 8, rows[i].at), 8);
		close(fd);
		if (live_reader_open(path, &err))
			fail_msg("row %zu", i);
		assert_non_null(strstr(err.text, path));
		unlinkat(dir, LIVE_FILE, 0);
	}
	assert_int_equal(truncate(path, 0), -1);
	assert_null(live_reader_open(path, &err));
	assert_int_equal(errno, ENOENT);
}

/* As in a RunDir that is full. */
TEST(without_room_nothing_is_left)
{
	struct rlimit none = { 0, RLIM_INFINITY }, before;
	FREED(trace_head_free) struct trace_head h = head_of(1);
	struct live_writer *w;
	struct err e = {""};

	if (geteuid())
		skip();
	getrlimit(RLIMIT_FSIZE, &before);
	none.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &none);
	w = live_writer_new(dir, &h, READER, &e);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_null(w);
	assert_non_null(strstr(e.text, LIVE_FILE));
	assert_int_equal(access(path, F_OK), -1);
}

FIXTURE(folder_make)
{
	char *folder = folder_new();

	snprintf(path, sizeof(path), "%s/" LIVE_FILE, folder);
	return (dir = open(folder, O_RDONLY | O_DIRECTORY)) < 0;
}

TESTS_MAIN(folder_make, NULL)
