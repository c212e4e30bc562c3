/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "snapshot_watch.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

/*
 * More than a clock tick of the kernel, the resolution of file times, and more than the time between parts of one
 * write.
 */
#define REST_SECONDS 1

struct snapshot_view {
	unsigned refs;			/* under watch.mutex */
	unsigned long serial;
	char sum[HASH_HEX];		/* of the file's text */
	struct snapshot *snapshot;
	struct directory nodes;
	bool *reported;			/* by the number of the node's name */
	struct first_cores {		/* under watch.mutex: several jobs are submitted at a time */
		const struct shape *of;
		struct shape *shape;
	} *firsts;
	size_t nfirsts;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop;
	char *path;
	unsigned poll;
	void (*say)(bool trouble, const char *line);
	struct stat seen;		/* of the last good file, if it was at rest: it has not changed */
	char said[sizeof(struct err)];	/* the last logged error, "" since a good view */
	unsigned restless;		/* consecutive checks that found the file changing */
	unsigned long serial;
	struct snapshot_view *view;
} watch = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* --- views --- */

static void view_free(struct snapshot_view *v)
{
	if (!v)
		return;
	directory_free(&v->nodes);
	free(v->reported);
	for (size_t i = 0; i < v->nfirsts; i++)
		shape_free(v->firsts[i].shape);
	free(v->firsts);
	snapshot_free(v->snapshot);
	free(v);
}

static struct snapshot_view *view_read(const char *path, struct err *e)
{
	struct snapshot_view *v = calloc(1, sizeof(*v));
	struct buf text = {0};

	if (!v)
		goto memory;
	v->refs = 1;
	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, e) ||
	    !(v->snapshot = snapshot_parse(text.data, text.len, path, e)))
		goto error;
	if (directory_fill(&v->nodes, v->snapshot, e)) {
		err_within(e, "%s", path);
		goto error;
	}
	if (!(v->reported = calloc(v->nodes.names.count + 1, sizeof(*v->reported))))
		goto memory;
	hash_hex(text.data, text.len, v->sum);
	buf_free(&text);
	return v;
memory:
	err_set(e, "%s: out of memory", path);
error:
	buf_free(&text);
	view_free(v);
	return NULL;
}

static void view_swap(struct snapshot_view *v)
{
	struct snapshot_view *old;

	pthread_mutex_lock(&watch.mutex);
	old = watch.view;
	watch.view = v;
	pthread_mutex_unlock(&watch.mutex);
	snapshot_view_release(old);
}

/* --- reading --- */

static void log_trouble(struct err *e)
{
	char line[sizeof(e->text) + 64];

	/* Errors quote bytes of a damaged file, and the log is read by people and terminals. */
	for (char *s = e->text; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
	if (!strcmp(watch.said, e->text))
		return;
	strcpy(watch.said, e->text);
	snprintf(line, sizeof(line), "%s; %s", e->text,
		 watch.view ? "the last good snapshot remains in use" : "jobs are placed as without one");
	watch.say(true, line);
}

/* A program is writing the file; mostly it is done by the next check. */
static void wait_for_rest(void)
{
	struct err e;

	if (++watch.restless < 2)
		return;
	err_set(&e, "%s: still being written at each check", watch.path);
	log_trouble(&e);
}

static void view_retain(struct snapshot_view *v)
{
	struct err line;

	if (watch.view && !*watch.said && !strcmp(watch.view->sum, v->sum)) {
		view_free(v);
		return;
	}
	*watch.said = '\0';
	v->serial = ++watch.serial;
	err_set(&line, "%s: %zu node%s of %zu shape%s", watch.path, v->nodes.names.count, PLURAL(v->nodes.names.count),
		v->snapshot->nshapes, PLURAL(v->snapshot->nshapes));
	view_swap(v);
	watch.say(false, line.text);
}

/* For a file that does not exist, all zeros. */
static struct stat file_now(void)
{
	struct stat st;

	return stat(watch.path, &st) ? (struct stat){0} : st;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       !memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) &&
	       !memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim));
}

/* A bad file is read again at each check: memory or descriptors may have been short for a moment. */
void snapshot_watch_check(void)
{
	struct stat before = file_now(), after;
	struct snapshot_view *v;
	bool rested, whole;
	struct timespec now;
	long long age;
	struct err e;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - before.st_ctim.tv_sec) * 1000000000ll + now.tv_nsec - before.st_ctim.tv_nsec;
	/* A time in the future comes from another clock and cannot be used. */
	rested = age < 0 || age >= REST_SECONDS * 1000000000ll;
	if (same_file(&before, &watch.seen))
		return;
	v = view_read(watch.path, &e);
	after = file_now();
	whole = same_file(&before, &after);
	watch.seen = v && whole && rested ? before : (struct stat){ .st_size = -1 };
	if (v && (v->snapshot->sealed || (whole && rested))) {
		watch.restless = 0;
		view_retain(v);
	} else if (v || !whole) {
		view_free(v);
		wait_for_rest();
	} else {
		log_trouble(&e);
	}
}

/* --- the thread --- */

static void *watch_thread(void *unused)
{
	double until;

	pthread_mutex_lock(&watch.mutex);
	while (!watch.stop) {
		pthread_mutex_unlock(&watch.mutex);
		snapshot_watch_check();
		until = clock_now() + watch.poll;
		pthread_mutex_lock(&watch.mutex);
		while (!watch.stop && clock_wait(&watch.wake, &watch.mutex, until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&watch.mutex);
	return unused;
}

int snapshot_watch_start(const char *path, unsigned poll, void (*say)(bool trouble, const char *line), struct err *e)
{
	int rc;

	if (!(watch.path = strdup(path)))
		return err_set(e, "%s: out of memory", path);
	watch.poll = poll;
	watch.say = say;
	watch.stop = false;
	watch.seen = (struct stat){ .st_size = -1 };
	*watch.said = '\0';
	watch.restless = 0;
	pthread_cond_init(&watch.wake, NULL);
	if (poll && (rc = pthread_create(&watch.thread, NULL, watch_thread, NULL))) {
		pthread_cond_destroy(&watch.wake);
		free(watch.path);
		watch.path = NULL;
		return err_set(e, "%s: no thread to watch it: %s", path, strerror(rc));
	}
	watch.running = true;
	return 0;
}

void snapshot_watch_stop(void)
{
	if (!watch.running)
		return;
	if (watch.poll) {
		pthread_mutex_lock(&watch.mutex);
		watch.stop = true;
		pthread_cond_signal(&watch.wake);
		pthread_mutex_unlock(&watch.mutex);
		pthread_join(watch.thread, NULL);
	}
	pthread_cond_destroy(&watch.wake);
	free(watch.path);
	watch.path = NULL;
	watch.running = false;
}

void snapshot_watch_drop(void)
{
	view_swap(NULL);
}

/* --- access to a view --- */

struct snapshot_view *snapshot_view_get(void)
{
	struct snapshot_view *v;

	pthread_mutex_lock(&watch.mutex);
	if ((v = watch.view))
		v->refs++;
	pthread_mutex_unlock(&watch.mutex);
	return v;
}

void snapshot_view_release(struct snapshot_view *v)
{
	unsigned left;

	if (!v)
		return;
	pthread_mutex_lock(&watch.mutex);
	left = --v->refs;
	pthread_mutex_unlock(&watch.mutex);
	if (!left)
		view_free(v);
}

const struct shape *snapshot_view_shape(const struct snapshot_view *v, const char *node)
{
	return directory_shape(&v->nodes, node);
}

const struct shape *snapshot_view_first_cores(struct snapshot_view *v, const struct shape *of, unsigned cores)
{
	struct shape *found = NULL;

	pthread_mutex_lock(&watch.mutex);
	for (size_t i = 0; !found && i < v->nfirsts; i++)
		if (v->firsts[i].of == of && v->firsts[i].shape->cores == cores)
			found = v->firsts[i].shape;
	if (!found && !array_reserve(v->firsts, v->nfirsts, 1) && (found = shape_first_cores(of, cores, NULL)))
		v->firsts[v->nfirsts++] = (struct first_cores){ of, found };
	pthread_mutex_unlock(&watch.mutex);
	return found;
}

const struct snapshot_shape *snapshot_view_shapes(const struct snapshot_view *v, size_t *n)
{
	*n = v->snapshot->nshapes;
	return v->snapshot->shapes;
}

size_t snapshot_view_nodes(const struct snapshot_view *v)
{
	return v->nodes.names.count;
}

unsigned long snapshot_view_serial(const struct snapshot_view *v)
{
	return v->serial;
}

bool snapshot_view_first(struct snapshot_view *v, const char *node)
{
	size_t i = string_map_find(&v->nodes.names, node);

	if (i == STRING_MAP_NONE || v->reported[i])
		return false;
	return v->reported[i] = true;
}
