/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "../../select_plugin/snapshot_watch.h"
#include "base/file.h"
#include "damage.h"
#include "table.h"
#include "shape/inventory.h"

#define HEAD "topiary-snapshot 1\n"
#define REST 1100	/* ms after which a handwritten file is accepted */

/* --- a folder, and the messages of the watch --- */

static char path[64], aside[64];

static struct {
	pthread_mutex_t mutex;
	unsigned troubles, views;
	char line[640];
} heard = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void hear(bool trouble, const char *line)
{
	pthread_mutex_lock(&heard.mutex);
	*(trouble ? &heard.troubles : &heard.views) += 1;
	snprintf(heard.line, sizeof(heard.line), "%s", line);
	pthread_mutex_unlock(&heard.mutex);
}

FIXTURE(folder_make)
{
	char *folder = folder_new();

	snprintf(path, sizeof(path), "%s/snapshot", folder);
	snprintf(aside, sizeof(aside), "%s/aside", folder);
	return 0;
}

FIXTURE(watch_begin)
{
	heard.troubles = heard.views = 0;
	*heard.line = '\0';
	return snapshot_watch_start(path, 0, hear, NULL);
}

FIXTURE(watch_end)
{
	snapshot_watch_stop();
	snapshot_watch_drop();
	unlink(path);
	return 0;
}

static void expect_heard(unsigned troubles, unsigned views, const char *words)
{
	if (heard.troubles != troubles || heard.views != views || !strstr(heard.line, words))
		fail_msg("%u troubles, %u views, and at last: %s", heard.troubles, heard.views, heard.line);
}

static void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* In threads of a test, from which cmocka cannot jump. */
static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	abort();
}

static void file_write_at(const char *at, int flags, const void *data, size_t len)
{
	int fd = open(at, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	must(fd >= 0 && file_write(fd, data, len) == 0, at);
	close(fd);
}

/* As a careful program writes it, without the syncs. */
static void file_swap(const void *data, size_t len)
{
	file_write_at(aside, O_TRUNC, data, len);
	must(rename(aside, path) == 0, path);
}

static void text_swap(const char *text)
{
	file_swap(text, strlen(text));
}

static struct buf sealed(const char *nodes, const char *shape)
{
	struct inventory *v = inventory_new();
	struct buf b = {0};

	assert_int_equal(inventory_add(v, nodes, shape, NULL), 0);
	assert_int_equal(inventory_snapshot(v, NULL, &b, NULL), 0);
	inventory_free(v);
	return b;
}

static void sealed_swap(const char *nodes, const char *shape)
{
	FREED(buf_free) struct buf b = sealed(nodes, shape);

	file_swap(b.data, b.len);
}

/* --- the contents of a view --- */

TEST(finds_shapes_of_nodes, .setup_func = watch_begin, .teardown_func = watch_end)
{
	const struct snapshot_shape *shapes;
	struct snapshot_view *v, *next;
	size_t n;

	assert_null(snapshot_view_get());
	sealed_swap("cn[1-3],big", "Package:2 Core:4 PU:1");
	snapshot_watch_check();
	expect_heard(0, 1, "snapshot: 4 nodes of 1 shape");
	v = snapshot_view_get();
	assert_non_null(v);
	assert_int_equal(snapshot_view_nodes(v), 4);
	assert_int_equal(snapshot_view_shape(v, "cn3")->cores, 8);
	assert_ptr_equal(snapshot_view_shape(v, "CN3.cluster.example"), snapshot_view_shape(v, "cn3"));
	assert_null(snapshot_view_shape(v, "cn4"));
	assert_null(snapshot_view_shape(v, ""));
	shapes = snapshot_view_shapes(v, &n);
	assert_int_equal(n, 1);
	assert_ptr_equal(shapes[0].shape, snapshot_view_shape(v, "big"));
	assert_true(snapshot_view_serial(v));
	assert_true(snapshot_view_first(v, "cn1") && !snapshot_view_first(v, "cn1"));
	assert_false(snapshot_view_first(v, "cn4"));

	sealed_swap("cn[3-4]", "Core:2");
	snapshot_watch_check();
	expect_heard(0, 2, "snapshot: 2 nodes of 1 shape");
	next = snapshot_view_get();
	assert_true(snapshot_view_serial(next) != snapshot_view_serial(v));
	assert_null(snapshot_view_shape(next, "cn1"));
	assert_int_equal(snapshot_view_shape(next, "cn3")->cores, 2);
	snapshot_view_release(next);
	snapshot_watch_drop();
	assert_null(snapshot_view_get());
	/* Held from before, unchanged. */
	assert_int_equal(snapshot_view_shape(v, "cn3")->cores, 8);
	snapshot_view_release(v);
	snapshot_view_release(NULL);
}

/* Written again with the same bytes it is the same view: results computed for it remain valid. */
TEST(keeps_the_view_of_equal_bytes, .setup_func = watch_begin, .teardown_func = watch_end)
{
	unsigned long serial = 0;

	for (int i = 0; i < 3; i++) {
		struct snapshot_view *v;

		sealed_swap("cn[1-3]", "Core:4");
		snapshot_watch_check();
		v = snapshot_view_get();
		assert_true(!serial || snapshot_view_serial(v) == serial);
		serial = snapshot_view_serial(v);
		snapshot_view_release(v);
	}
	expect_heard(0, 1, "snapshot: 3 nodes");
}

/* --- errors --- */

static const char nothing[] = "nothing", zeros[4096], cut[] = "cut", changed[] = "changed", as_folder[] = "a folder";

/* A text, or one of these. */
static void put_bad(const char *what)
{
	FREED(buf_free) struct buf b = sealed("cn[1-3]", "Core:4");

	if (what == nothing) {
		unlink(path);
	} else if (what == as_folder) {
		unlink(path);
		assert_int_equal(mkdir(path, 0755), 0);
	} else if (what == zeros) {
		file_swap(zeros, sizeof(zeros));
	} else if (what == cut) {
		file_swap(b.data, b.len - 1);
	} else if (what == changed) {
		*strstr(b.data, "cn[1-3]") = 'x';
		file_swap(b.data, b.len);
	} else {
		text_swap(what);
	}
}

TEST(reports_each_error_once, .setup_func = watch_begin, .teardown_func = watch_end)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ nothing, "No such file" }, { "", "snapshot:0: truncated" }, { zeros, "not a text" },
		{ cut, "snapshot:5: truncated" }, { changed, "snapshot:5: checksum does not match" },
		{ HEAD "shape a Core:4\nshape b Core:4\nnodes cn[1-3] a\nnodes cn[3-4] b\nend\n",
		  "snapshot: node cn3 has two shapes" },
		{ HEAD "shape a Core:4\nnodes cn[1- a\nend\n", "snapshot: 'cn[1-': invalid host list" },
		{ HEAD "shape a Core:4\nnodes a[1-999999] a\nnodes b[1-2] a\nend\n",
		  "snapshot: 'b[1-2]': more than 1000000 names" },
		{ HEAD "shape a Core:\033[31m\nend\n", "snapshot:2: missing count at ':?[31m'" },
		{ as_folder, "not a regular file" },
	};
	static const char *const then[] = { "; jobs are placed as without one",
					    "; the last good snapshot remains in use" };

	for (int good = 0; good < 2; good++)
		for (size_t i = 0; i < ROWS(rows); i++) {
			watch_end(NULL);
			watch_begin(NULL);
			if (good) {
				sealed_swap("cn[1-9]", "Core:4");
				snapshot_watch_check();
			}
			put_bad(rows[i].text);
			for (int looks = 0; looks < 2; looks++)
				snapshot_watch_check();
			expect_heard(1, good, rows[i].words);
			expect_heard(1, good, then[good]);
			rmdir(path);
			sealed_swap("cn[1-9]", "Core:4");
			snapshot_watch_check();
			expect_heard(1, good + 1, "snapshot: 9 nodes");
		}
}

/* The file is unchanged and has been for a while: only the error is gone. */
TEST(reads_again_after_a_temporary_error, .setup_func = watch_begin, .teardown_func = watch_end)
{
	struct rlimit limit, none;

	sealed_swap("cn[1-3]", "Core:4");
	sleep_ms(REST);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	snapshot_watch_check();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect_heard(1, 0, "Too many open files; jobs are placed as without one");
	snapshot_watch_check();
	expect_heard(1, 1, "snapshot: 3 nodes");
}

/* --- files that change while they are read --- */

/*
 * Generations of one cluster that differ in every shape and have one length: a file with parts of two is well-formed.
 */
#define GENERATIONS 8
#define SHAPES 3000
#define CHUNK 8192

static struct buf generations[2][GENERATIONS];	/* handwritten, and sealed */

static void generation_write(struct buf *b, unsigned cores, bool seal)
{
	snapshot_start(b);
	for (unsigned s = 0; s < SHAPES; s++) {
		char name[16], shape[32], nodes[32];

		snprintf(name, sizeof(name), "s%04u", s);
		snprintf(shape, sizeof(shape), "Package:1 Core:%u PU:1", cores);
		snprintf(nodes, sizeof(nodes), "cn%04u[1-4]", s);
		snapshot_add_shape(b, name, shape);
		snapshot_add_nodes(b, nodes, name);
	}
	if (seal) {
		snapshot_end(b);
		return;
	}
	buf_puts(b, "end\n");
	memset(strstr(b->data, "sealed"), '#', strlen("sealed"));
}

FIXTURE(generations_make)
{
	for (int seal = 0; seal < 2; seal++)
		for (unsigned g = 0; g < GENERATIONS; g++)
			generation_write(&generations[seal][g], 10 + g, seal);
	return watch_begin(state);
}

FIXTURE(generations_free)
{
	for (int seal = 0; seal < 2; seal++)
		for (unsigned g = 0; g < GENERATIONS; g++)
			buf_free(&generations[seal][g]);
	return watch_end(state);
}

/* Written in place without truncation, in parts: the file is of two generations until it is complete. */
static void overwrite(const struct buf *b)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0, path);
	for (size_t at = 0; at < b->len; at += CHUNK) {
		size_t len = b->len - at < CHUNK ? b->len - at : CHUNK;

		must(pwrite(fd, b->data + at, len, at) == (ssize_t) len, path);
	}
	must(ftruncate(fd, b->len) == 0, path);
	close(fd);
}

static void rewrite(const struct buf *b)
{
	file_write_at(path, O_TRUNC, b->data, b->len);
}

static void swap_whole(const struct buf *b)
{
	file_swap(b->data, b->len);
}

static void swap_half(const struct buf *b)
{
	file_swap(b->data, b->len / 2);
}

struct writer {
	pthread_t thread;
	atomic_bool stop;
	bool seal;
	atomic_ulong written, taken, broken;	/* files, views */
	double pause;				/* the longest, in seconds, from one file to the next */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *writer_run(void *user)
{
	static void (*const ways[2][4])(const struct buf *b) = {
		{ overwrite, overwrite, rewrite, swap_half },
		{ overwrite, swap_whole, rewrite, swap_half },
	};
	struct dice dice = { 20260303 };
	struct writer *w = user;

	double last = now();

	while (!w->stop) {
		double began = last;

		ways[w->seal][dice_roll(&dice, 4)](&generations[w->seal][dice_roll(&dice, GENERATIONS)]);
		last = now();
		w->pause = last - began > w->pause ? last - began : w->pause;
		w->written++;
	}
	return NULL;
}

static bool view_whole(const struct snapshot_view *v)
{
	size_t n, same = 0;
	const struct snapshot_shape *shapes = snapshot_view_shapes(v, &n);

	for (size_t i = 0; i < n; i++)
		same += shapes[i].shape->cores == shapes[0].shape->cores;
	return same == SHAPES && n == SHAPES && snapshot_view_nodes(v) == 4 * SHAPES &&
	       snapshot_view_shape(v, "cn00071") == shapes[7].shape;
}

/* The scheduler's side: views are acquired and released while others are read. */
static void *taker_run(void *user)
{
	struct writer *w = user;

	while (!w->stop) {
		struct snapshot_view *v = snapshot_view_get();

		if (v) {
			w->taken++;
			w->broken += !view_whole(v);
		}
		snapshot_view_release(v);
		sleep_ms(1);
	}
	return NULL;
}

/* Looks for two seconds, and on a busy machine until enough was written and, of sealed files, read. */
static struct writer look_while_written(bool seal)
{
	struct writer w = { .seal = seal };
	double end = now() + 2, last = end + 60;
	pthread_t taker;

	assert_int_equal(pthread_create(&w.thread, NULL, writer_run, &w), 0);
	assert_int_equal(pthread_create(&taker, NULL, taker_run, &w), 0);
	while (now() < end || (now() < last && (w.written < 20 || (seal && (w.taken < 20 || heard.views < 3)))))
		snapshot_watch_check();
	w.stop = true;
	pthread_join(w.thread, NULL);
	pthread_join(taker, NULL);
	return w;
}

TEST(accepts_only_complete_sealed_files, .setup_func = generations_make, .teardown_func = generations_free)
{
	struct writer w;

	swap_whole(&generations[true][0]);
	w = look_while_written(true);
	if (w.broken || w.written < 20 || w.taken < 20 || heard.views < 3)
		fail_msg("%lu written, %u read, %lu taken, %lu of them broken", w.written, heard.views, w.taken,
			 w.broken);
}

/* Completeness is unknown: none is accepted until the writer has stopped for a second, then the last one is. */
TEST(accepts_handwritten_files_at_rest, .setup_func = generations_make, .teardown_func = generations_free)
{
	struct snapshot_view *v;
	struct writer w;
	bool rested;

	swap_whole(&generations[false][0]);
	w = look_while_written(false);
	rested = 1000 * w.pause > REST / 2.0;	/* a busy machine stopped the writer: half a file may be taken */
	if (w.written < 20 || (!rested && (w.taken || heard.views)))
		fail_msg("%lu written, %u read, %lu taken, %lu of them broken", w.written, heard.views, w.taken,
			 w.broken);
	if (rested)
		return;
	overwrite(&generations[false][3]);
	snapshot_watch_check();
	assert_null(snapshot_view_get());
	sleep_ms(REST);
	snapshot_watch_check();
	v = snapshot_view_get();
	assert_non_null(v);
	assert_true(view_whole(v));
	assert_int_equal(snapshot_view_shape(v, "cn00001")->cores, 13);
	snapshot_view_release(v);
}

/* Saving in an editor just before a check is no error; saving before every check is. */
TEST(waits_for_writers, .setup_func = watch_begin, .teardown_func = watch_end)
{
	text_swap(HEAD "shape a Core:4\nnodes cn1 a\nend\n");
	snapshot_watch_check();
	expect_heard(0, 0, "");
	for (int i = 0; i < 2; i++) {
		snapshot_watch_check();
		expect_heard(1, 0, "snapshot: still being written at each check; jobs are placed as without one");
	}
	sleep_ms(REST);
	snapshot_watch_check();
	expect_heard(1, 1, "snapshot: 1 node of 1 shape");
}

/* --- the thread --- */

static void expect_view_within(unsigned ms, unsigned cores)
{
	for (unsigned waited = 0; waited < ms; waited += 10) {
		struct snapshot_view *v = snapshot_view_get();
		bool found = v && snapshot_view_shape(v, "cn1")->cores == cores;

		snapshot_view_release(v);
		if (found)
			return;
		sleep_ms(10);
	}
	fail_msg("no view of %u cores within %u ms", cores, ms);
}

TEST(thread_polls_the_file, .setup_func = watch_begin, .teardown_func = watch_end)
{
	double before;

	sealed_swap("cn1", "Core:4");
	snapshot_watch_stop();
	assert_int_equal(snapshot_watch_start(path, 1, hear, NULL), 0);
	expect_view_within(2000, 4);
	sealed_swap("cn1", "Core:8");
	expect_view_within(5000, 8);
	snapshot_watch_stop();
	/* When stopped, it keeps the view and reads no other; stopping does not wait for the next check. */
	sealed_swap("cn1", "Core:2");
	assert_int_equal(snapshot_watch_start(aside, 3600, hear, NULL), 0);
	sleep_ms(50);
	before = now();
	snapshot_watch_stop();
	assert_true(now() - before < 5);
	expect_view_within(10, 8);
	snapshot_watch_stop();
}

TESTS_MAIN(folder_make, NULL)
