/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "publish.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "topo/inventory.h"
#include "topo/snapshot.h"

#define INTERVAL 30
#define BURST 1		/* seconds between two writings */

struct publisher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool nudged, stop;
	struct db_pool *pool;
	const char *path;
	struct buf last;
	char complaint[sizeof(((struct err *) 0)->text)];
};

int publish_text(struct db *db, struct buf *out, struct err *e)
{
	struct inventory *v = inventory_new();
	PGresult *r = db_query(db, e,
		"SELECT s.allocation, string_agg(n.name, ',') FROM node n JOIN form f ON f.id = n.form JOIN shape s ON s.name = f.shape"
		" GROUP BY s.name", 0, NULL);
	int rc = v && r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r); i++)
		rc = inventory_add(v, PQgetvalue(r, i, 1), PQgetvalue(r, i, 0), e);
	if (rc == 0)
		rc = inventory_snapshot(v, out, e);
	PQclear(r);
	inventory_free(v);
	return rc;
}

static int refresh(struct publisher *p, struct err *e)
{
	struct db *db = db_take(p->pool, e);
	struct buf text = {0};
	int rc = db ? publish_text(db, &text, e) : -1;

	db_give(p->pool, db);
	if (rc || (text.len == p->last.len && p->last.data && !memcmp(text.data, p->last.data, text.len)) ||
	    (rc = file_replace(p->path, text.data, text.len, 0644, e))) {
		buf_free(&text);
		return rc;
	}
	buf_free(&p->last);
	p->last = text;
	log_info("%s: written, %zu bytes", p->path, text.len);
	return 0;
}

/* A trouble that lasts is told once, and once more when it is over. */
static void report(struct publisher *p, int rc, const struct err *e)
{
	const char *now = rc ? e->text : "";

	if (!strcmp(now, p->complaint))
		return;
	if (rc)
		log_error("%s: not refreshed: %s", p->path, now);
	else
		log_info("%s: refreshed again", p->path);
	snprintf(p->complaint, sizeof(p->complaint), "%s", now);
}

static bool wait_turn(struct publisher *p)
{
	struct timespec until;
	bool again;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += *p->complaint ? BURST : INTERVAL;
	pthread_mutex_lock(&p->lock);
	while (!p->nudged && !p->stop && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
		;
	again = p->nudged || !p->stop;
	p->nudged = false;
	pthread_mutex_unlock(&p->lock);
	return again;
}

static bool stopping(struct publisher *p)
{
	bool stop;

	pthread_mutex_lock(&p->lock);
	stop = p->stop;
	pthread_mutex_unlock(&p->lock);
	return stop;
}

static void *run(void *user)
{
	struct publisher *p = user;
	struct err e;
	int rc;

	do {
		rc = refresh(p, &e);
		report(p, rc, &e);
		if (!stopping(p))
			sleep(BURST);
	} while (wait_turn(p));
	return NULL;
}

struct publisher *publisher_start(struct db_pool *pool, const char *path, struct err *e)
{
	struct publisher *p = calloc(1, sizeof(*p));

	if (!p) {
		err_set(e, "out of memory");
		return NULL;
	}
	p->pool = pool;
	p->path = path;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	if (pthread_create(&p->thread, NULL, run, p)) {
		err_set(e, "no thread to write %s", path);
		free(p);
		return NULL;
	}
	return p;
}

void publisher_nudge(struct publisher *p)
{
	pthread_mutex_lock(&p->lock);
	p->nudged = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void publisher_stop(struct publisher *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	buf_free(&p->last);
	free(p);
}
