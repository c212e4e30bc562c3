/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "readiness.h"

#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "shape/snapshot.h"

/*
 * Notes
 *
 * One thread runs the checks, one after another and without the lock: any of them may hang as long as its own limit.
 * The lock is of what they found, which requests read.
 */
#define INTERVAL 5			/* seconds */
#define STALE 30		/* seconds after which a result counts as unknown */
#define NAME "readyz"

/* Each returns 0, or -1 with an error. */
static int check_connection(struct db_pool *pool, int (*run)(struct db *db, struct err *e), struct err *e)
{
	struct db *db = db_acquire(pool, e);
	int rc = db ? run(db, e) : -1;

	db_release(db);
	return rc;
}

static int query_nothing(struct db *db, struct err *e)
{
	return db_execute(db, e, "SELECT 1", 0, NULL);
}

static int query_read_only(struct db *db, struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT current_setting('transaction_read_only')", 0, NULL);
	int rc = r ? 0 : -1;

	if (r && strcmp(PQgetvalue(r, 0, 0), "off"))
		rc = err_set(e, "PostgreSQL accepts no writes: look for default_transaction_read_only");
	PQclear(r);
	return rc;
}

static int check_writes(struct service *s, struct err *e)
{
	int rc = check_connection(s->checks, query_read_only, e);

	/* New sessions may be writable: a setting of the role or database is read when one begins. */
	if (rc) {
		db_pool_invalidate(s->checks);
		db_pool_invalidate(s->pool);
	}
	return rc;
}

static int check_schema(struct service *s, struct err *e)
{
	return check_connection(s->checks, db_check, e);
}

static int check_reads(struct service *s, struct err *e)
{
	return s->read_checks ? check_connection(s->read_checks, query_nothing, e) : 0;
}

static int check_munge(struct service *s, struct err *e)
{
	return cred_test(NAME, s->settings.munge_socket, e);
}

/* Refusing an invalid document shows that a worker ran. */
static int check_workers(struct service *s, struct err *e)
{
	struct buf nothing = {0};
	struct parsed parsed;
	enum parser_result rc;

	buf_puts(&nothing, "<nothing/>");
	if ((rc = parser_read(s->parser, NAME, &nothing, &parsed, NULL, e)) == PARSER_OK)
		parsed_free(&parsed);
	buf_free(&nothing);
	return rc == PARSER_FAILED ? -1 : 0;
}

/* Replacing the snapshot needs space beside the old one. Exports are accepted whatever becomes of the other files. */
static int check_disk(struct service *s, struct err *e)
{
	const char *file = s->settings.snapshot_file, *slash = strrchr(file, '/');
	struct statvfs fs;
	char folder[4096];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int) (slash - file) + 1 : 1, slash ? file : ".");
	if (access(folder, W_OK | X_OK) || statvfs(folder, &fs))
		return err_set(e, "%s: %s", folder, strerror(errno));
	if (fs.f_bavail * (unsigned long long) fs.f_frsize < SNAPSHOT_MAX_BYTES)
		return err_set(e, "%s: less than %u MiB free", folder, SNAPSHOT_MAX_BYTES >> 20);
	return 0;
}

static int check_snapshot(struct service *s, struct err *e)
{
	return publisher_is_current(s->publisher) ? 0 :
	       err_set(e, "%s is not what the database has: see topiaryd's log", s->settings.snapshot_file);
}

static const struct check {
	const char *name;
	int (*run)(struct service *s, struct err *e);
	bool is_named_only;	/* exports are accepted all the same */
} checks[] = {
	{ "database", check_writes, false }, { "schema", check_schema, false }, { "reads", check_reads, true },
	{ "munge", check_munge, false }, { "disk", check_disk, false }, { "workers", check_workers, false },
	{ "snapshot", check_snapshot, true },
};
#define CHECKS (sizeof(checks) / sizeof(checks[0]))

struct readiness {
	struct service *service;
	struct background background;	/* its lock is of what was found */
	struct {
		double at;		/* in clock_now; 0: never */
		char error[sizeof(((struct err *) 0)->text)];	/* empty: passed */
	} found[CHECKS];
};

static void *readiness_thread(void *user)
{
	struct readiness *r = user;
	double until;

	do {
		until = clock_now() + INTERVAL;
		for (size_t i = 0; i < CHECKS; i++) {
			char *found = r->found[i].error;
			struct err e = {""};
			int rc = checks[i].run(r->service, &e);

			pthread_mutex_lock(&r->background.lock);
			if (rc && !*found)
				log_error("/readyz: %s failed: %s", checks[i].name, e.text);
			else if (!rc && *found)
				log_info("/readyz: %s is well again", checks[i].name);
			snprintf(found, sizeof(r->found[i].error), "%s", rc ? e.text : "");
			r->found[i].at = clock_now();
			pthread_mutex_unlock(&r->background.lock);
		}
	} while (background_pause(&r->background, until));
	return NULL;
}

struct readiness *readiness_start(struct service *s, struct err *e)
{
	struct readiness *r = calloc(1, sizeof(*r));

	if (!r)
		return err_null(e, "out of memory");
	r->service = s;
	if (background_start(&r->background, readiness_thread, r, "readiness checks", e)) {
		free(r);
		return NULL;
	}
	return r;
}

void readiness_stop(struct readiness *r)
{
	if (r)
		background_stop(&r->background);
	free(r);
}

void read_alive(struct call *c)
{
	call_json(c, 200, json_pack("{s:s, s:s}", "status", "ok", "version", TOPIARY_VERSION));
}

void read_health(struct call *c)
{
	struct err e;

	if (check_connection(c->service->checks, query_nothing, &e) || check_schema(c->service, &e))
		call_fail(c, 503, "%s", e.text);
	else
		read_alive(c);
}

void read_ready(struct call *c)
{
	struct readiness *r = c->service->readiness;
	json_t *all = json_object();
	bool ready = true;

	if (atomic_load(&c->service->ending)) {
		ready = false;
		json_object_set_new(all, "ending", json_string("topiaryd finishes what it has, and ends"));
	}
	pthread_mutex_lock(&r->background.lock);
	for (size_t i = 0; i < CHECKS; i++) {
		const char *error = r->found[i].error;
		bool known = r->found[i].at && clock_now() < r->found[i].at + STALE;

		ready &= checks[i].is_named_only || (known && !*error);
		json_object_set_new(all, checks[i].name,
				    json_string(!known ? "no result yet" : *error ? error : "ok"));
	}
	pthread_mutex_unlock(&r->background.lock);
	c->reply.retry_after = ready ? 0 : INTERVAL;
	call_json(c, ready ? 200 : 503, json_pack("{s:s, s:s, s:o}", "status", ready ? "ok" : "not ready", "version",
						  TOPIARY_VERSION,
						  "checks", all));
}
