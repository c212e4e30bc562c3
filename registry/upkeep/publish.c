/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "publish.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "store/costs_store.h"
#include "store/fabric_store.h"
#include "shape/inventory.h"
#include "shape/snapshot.h"

/*
 * Notes
 *
 * The files, what was published of the fabric and the last errors belong to the thread; others only ask for a refresh,
 * and read `unwritten`, which is atomic. It writes at most once in MIN_INTERVAL, and what was requested before it
 * stops.
 */
#define INTERVAL 30
#define FILE_MAX (64u << 20)	/* bytes; a larger file is not ours, and is replaced */
#define MIN_INTERVAL 1		/* seconds between two writes */

struct published_file {
	const char *path;
	atomic_bool unwritten;	/* the file is not what the database has */
	struct stat written;	/* of the file, when it was */
	char last_error[sizeof(((struct err *) 0)->text)];
};

struct publisher {
	struct background background;	/* its lock is of nudged */
	bool nudged;
	struct db_pool *pool;
	struct published_file snapshot, fabric, costs;
	char version[FABRIC_VERSION_NAME];	/* the fabric that was published; empty: none */
	double looked;		/* time of publishing it, in clock_now */
	bool nodes_changed;	/* since then */
};

int publish_text(struct db *db, struct buf *out, struct err *e)
{
	struct inventory *v = inventory_new();
	PGresult *r = db_query(db, e,
		"SELECT s.allocation, string_agg(n.name, ','), (SELECT identity || ' ' || removed FROM registry)"
		" FROM node n"
		" JOIN layout f ON f.id = n.layout JOIN shape s ON s.name = f.shape GROUP BY s.name", 0, NULL);
	int rc = v && r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r); i++)
		rc = inventory_add(v, PQgetvalue(r, i, 1), PQgetvalue(r, i, 0), e);
	if (rc == 0)
		rc = inventory_snapshot(v, PQntuples(r) ? PQgetvalue(r, 0, 2) : NULL, out, e);
	PQclear(r);
	inventory_free(v);
	return rc;
}

/*
 * Takes ownership of text: 1 when the file is another and was written, 0, -1. The file itself is compared, since it may
 * have been damaged or deleted.
 */
static int write_new(struct published_file *p, struct buf *text, bool is_snapshot, struct err *e)
{
	struct buf file = {0};
	int rc;

	if (is_snapshot)
		rc = snapshot_replace(p->path, text, false, e);
	else if (!file_read(p->path, FILE_MAX, &file, NULL) && file.len == text->len &&
		 !memcmp(file.data, text->data, text->len))
		rc = 0;
	else
		rc = file_replace(p->path, text->data, text->len, 0644, e) ? -1 : 1;
	atomic_store(&p->unwritten, rc < 0);
	if (rc < 0 || stat(p->path, &p->written))
		p->written = (struct stat){0};
	if (rc == 1)
		log_info("%s: written, %zu bytes", p->path, text->len);
	buf_free(&file);
	buf_free(text);
	return rc;
}

/* Nobody has damaged or deleted it since. */
static bool is_as_written(const struct published_file *p)
{
	struct stat now;

	return !stat(p->path, &now) && now.st_ino == p->written.st_ino &&
	       !memcmp(&now.st_ctim, &p->written.st_ctim, sizeof(now.st_ctim));
}

/* A lasting failure is logged once, and its end once. */
static void report_error(struct published_file *p, int rc, const struct err *e)
{
	const char *now = rc < 0 ? e->text : "";

	if (!strcmp(now, p->last_error))
		return;
	if (rc < 0)
		log_error("%s: cannot update: %s", p->path, now);
	else
		log_info("%s: up to date again", p->path);
	snprintf(p->last_error, sizeof(p->last_error), "%s", now);
}

static int refresh_text(struct published_file *p, struct db *db, int (*make)(struct db *, struct buf *, struct err *),
			struct err *e)
{
	struct buf text = {0};

	if (make(db, &text, e) == 0)
		return write_new(p, &text, make == publish_text, e);
	buf_free(&text);
	return -1;
}

static int refresh_fabric(struct publisher *p, struct db *db, struct err *e)
{
	char version[FABRIC_VERSION_NAME];
	struct buf text = {0};
	int rc;

	if (fabric_latest(db, version, e))
		return -1;
	/* New nodes may be hosts whose names were unknown, but they come by the hundred. */
	if (!strcmp(version, p->version) &&
	    (!*version || (is_as_written(&p->fabric) &&
			   (!p->nodes_changed || clock_now() < p->looked + INTERVAL))))
		return 0;
	switch (fabric_levels(db, &text, e)) {
	case FABRIC_OK:
		rc = write_new(&p->fabric, &text, false, e);
		break;
	case FABRIC_ABSENT:
		rc = unlink(p->fabric.path) && errno != ENOENT ?
			err_set(e, "%s: %s", p->fabric.path, strerror(errno)) : 0;
		break;
	default:
		buf_free(&text);
		rc = -1;
	}
	p->nodes_changed = false;
	p->looked = clock_now();
	snprintf(p->version, sizeof(p->version), "%s", rc < 0 ? "?" : version);
	return rc;
}

static void *publisher_run(void *user)
{
	struct publisher *p = user;
	struct background *b = &p->background;
	bool again;

	do {
		double until;

		struct err e;
		struct db *db = db_acquire(p->pool, &e);
		int rc = db ? refresh_text(&p->snapshot, db, publish_text, &e) : -1;

		report_error(&p->snapshot, rc, &e);
		p->nodes_changed |= rc == 1;
		if (db) {
			report_error(&p->fabric, refresh_fabric(p, db, &e), &e);
			report_error(&p->costs, refresh_text(&p->costs, db, costs_text, &e), &e);
		}
		db_release(db);
		background_pause(b, clock_now() + MIN_INTERVAL);
		until = clock_now() + (*p->snapshot.last_error || *p->fabric.last_error || *p->costs.last_error ?
				       MIN_INTERVAL : INTERVAL);
		pthread_mutex_lock(&b->lock);
		while (!p->nudged && !b->stop && clock_wait(&b->wake, &b->lock, until) == 0)
			;
		again = p->nudged || !b->stop;
		p->nudged = false;
		pthread_mutex_unlock(&b->lock);
	} while (again);
	return NULL;
}

struct publisher *publisher_start(struct db_pool *pool, const struct settings *s, struct err *e)
{
	struct publisher *p = calloc(1, sizeof(*p));

	if (!p)
		return err_null(e, "out of memory");
	p->pool = pool;
	p->snapshot.path = s->snapshot_file;
	p->fabric.path = s->fabric_file;
	p->costs.path = s->costs_file;
	if (background_start(&p->background, publisher_run, p, "SnapshotFile", e)) {
		free(p);
		return NULL;
	}
	return p;
}

bool publisher_is_current(struct publisher *p)
{
	return !atomic_load(&p->snapshot.unwritten);
}

void publisher_request(struct publisher *p)
{
	pthread_mutex_lock(&p->background.lock);
	p->nudged = true;
	pthread_cond_signal(&p->background.wake);
	pthread_mutex_unlock(&p->background.lock);
}

void publisher_stop(struct publisher *p)
{
	if (p)
		background_stop(&p->background);
	free(p);
}
