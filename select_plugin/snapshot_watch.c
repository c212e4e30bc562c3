/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_glue.h"

#include "snapshot_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "topo/snapshot.h"

struct entry {
	char *node;
	const struct shape *shape;
	bool told;
};

struct snapshot_view {
	unsigned refs;			/* under watch.mutex */
	struct snapshot *snapshot;
	struct entry *table;		/* open addressing; size is a power of two */
	size_t size, used;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop;
	char *path;
	unsigned poll;
	struct stat seen;		/* of the file looked at last, good or bad */
	struct snapshot_view *view;
} watch = { .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

/* FNV-1a (Fowler, Noll, Vo): short names, and no adversary among them. */
static size_t name_hash(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (unsigned char) *s) * 1099511628211u;
	return h ^ (h >> 32);
}

static struct entry *table_slot(const struct snapshot_view *v, const char *node)
{
	size_t i = name_hash(node) & (v->size - 1);

	while (v->table[i].node && strcmp(v->table[i].node, node))
		i = (i + 1) & (v->size - 1);
	return &v->table[i];
}

static int table_grow(struct snapshot_view *v)
{
	struct snapshot_view big = { .size = v->size ? 2 * v->size : 1024 };

	if (!(big.table = calloc(big.size, sizeof(*big.table))))
		return -1;
	for (size_t i = 0; i < v->size; i++)
		if (v->table[i].node)
			*table_slot(&big, v->table[i].node) = v->table[i];
	free(v->table);
	v->table = big.table;
	v->size = big.size;
	return 0;
}

/* Takes the name. */
static int table_put(struct snapshot_view *v, char *node, const struct shape *shape)
{
	struct entry *at;

	if (2 * (v->used + 1) > v->size && table_grow(v)) {
		free(node);
		return -1;
	}
	at = table_slot(v, node);
	if (at->node)
		free(node);
	else
		v->used++;
	*at = (struct entry){ .node = at->node ? at->node : node, .shape = shape };
	return 0;
}

static void view_free(struct snapshot_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->size; i++)
		free(v->table[i].node);
	free(v->table);
	snapshot_free(v->snapshot);
	free(v);
}

static int add_nodes(struct snapshot_view *v, const struct snapshot_nodes *n, const char *path, struct err *e)
{
	hostlist_t hosts = hostlist_create(n->hosts);
	char *node;
	int rc = 0;

	if (!hosts)
		return err_set(e, "%s: '%s' is no host list", path, n->hosts);
	while (!rc && (node = hostlist_shift(hosts)))
		rc = table_put(v, node, n->shape);
	hostlist_destroy(hosts);
	return rc ? err_set(e, "%s: out of memory", path) : 0;
}

static struct snapshot_view *view_read(const char *path, struct err *e)
{
	struct snapshot_view *v = calloc(1, sizeof(*v));
	struct buf text = {0};

	if (!v || table_grow(v)) {
		err_set(e, "%s: out of memory", path);
		goto error;
	}
	v->refs = 1;
	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, e) || !(v->snapshot = snapshot_parse(text.data, text.len, path, e)))
		goto error;
	for (size_t i = 0; i < v->snapshot->nnodes; i++)
		if (add_nodes(v, &v->snapshot->nodes[i], path, e))
			goto error;
	buf_free(&text);
	return v;
error:
	buf_free(&text);
	view_free(v);
	return NULL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void view_swap(struct snapshot_view *v)
{
	struct snapshot_view *old;

	pthread_mutex_lock(&watch.mutex);
	old = watch.view;
	watch.view = v;
	pthread_mutex_unlock(&watch.mutex);
	snapshot_view_put(old);
}

/* A file that is not there has the stat of all zeros, so that this too is said once. */
static void look(void)
{
	struct snapshot_view *v;
	struct stat now = {0};
	struct err e;

	if (stat(watch.path, &now))
		memset(&now, 0, sizeof(now));
	if (same_file(&now, &watch.seen))
		return;
	watch.seen = now;
	if (!(v = view_read(watch.path, &e))) {
		error("topiary: %s; %s", e.text, watch.view ? "the last good snapshot stays" : "nodes are chosen as without it");
		return;
	}
	info("topiary: %s: %zu nodes of %zu shapes", watch.path, v->used, v->snapshot->nshapes);
	view_swap(v);
}

static void *watch_thread(void *unused)
{
	struct timespec until;

	pthread_mutex_lock(&watch.mutex);
	while (!watch.stop) {
		pthread_mutex_unlock(&watch.mutex);
		look();
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += watch.poll;
		pthread_mutex_lock(&watch.mutex);
		while (!watch.stop && pthread_cond_timedwait(&watch.wake, &watch.mutex, &until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&watch.mutex);
	return unused;
}

int snapshot_watch_start(const char *path, unsigned poll, struct err *e)
{
	int rc;

	if (!(watch.path = strdup(path)))
		return err_set(e, "%s: out of memory", path);
	watch.poll = poll;
	watch.stop = false;
	watch.seen = (struct stat){ .st_size = -1 };
	if ((rc = pthread_create(&watch.thread, NULL, watch_thread, NULL))) {
		free(watch.path);
		return err_set(e, "%s: no thread to watch it: %s", path, strerror(rc));
	}
	watch.running = true;
	return 0;
}

void snapshot_watch_stop(void)
{
	if (!watch.running)
		return;
	pthread_mutex_lock(&watch.mutex);
	watch.stop = true;
	pthread_cond_signal(&watch.wake);
	pthread_mutex_unlock(&watch.mutex);
	pthread_join(watch.thread, NULL);
	free(watch.path);
	watch.running = false;
}

void snapshot_watch_drop(void)
{
	view_swap(NULL);
}

struct snapshot_view *snapshot_view_get(void)
{
	struct snapshot_view *v;

	pthread_mutex_lock(&watch.mutex);
	if ((v = watch.view))
		v->refs++;
	pthread_mutex_unlock(&watch.mutex);
	return v;
}

void snapshot_view_put(struct snapshot_view *v)
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
	return table_slot(v, node)->shape;
}

bool snapshot_view_first(struct snapshot_view *v, const char *node)
{
	struct entry *at = table_slot(v, node);

	if (!at->node || at->told)
		return false;
	return at->told = true;
}
