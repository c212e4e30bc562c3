/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUTES_MAX 32
#define CLASSES 5	/* of status: 1xx to 5xx */
#define REMEMBERED 5	/* seconds: what SQL said */

static const double bounds[] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 };

struct route_counts {
	const char *method, *pattern;
	atomic_ullong by_class[CLASSES];
	atomic_ullong in_bucket[COUNT(bounds) + 1];
	atomic_ullong microseconds;
};

struct metrics {
	unsigned nroutes;
	struct route_counts routes[ROUTES_MAX];
	pthread_mutex_t lock;
	time_t asked;
	struct buf from_sql;
};

struct metrics *metrics_new(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	buf_free(&m->from_sql);
	free(m);
}

int metrics_add(struct metrics *m, const char *method, const char *pattern)
{
	if (m->nroutes == ROUTES_MAX)
		return -1;
	m->routes[m->nroutes].method = method;
	m->routes[m->nroutes].pattern = pattern;
	return m->nroutes++;
}

void metrics_observe(struct metrics *m, int route, unsigned status, double seconds)
{
	struct route_counts *r = &m->routes[route];
	size_t i = 0;

	while (i < COUNT(bounds) && seconds > bounds[i])
		i++;
	atomic_fetch_add(&r->in_bucket[i], 1);
	atomic_fetch_add(&r->microseconds, (unsigned long long) (1e6 * seconds));
	if (status >= 100 && status < 100 * (CLASSES + 1))
		atomic_fetch_add(&r->by_class[status / 100 - 1], 1);
}

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP topiary_%s %s\n# TYPE topiary_%s %s\n", name, help, name, type);
}

static void one(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	head(out, name, type, help);
	buf_printf(out, "topiary_%s %.15g\n", name, value);
}

static void requests(struct buf *out, struct metrics *m)
{
	head(out, "requests_total", "counter", "Requests answered, by the first digit of the status.");
	for (unsigned i = 0; i < m->nroutes; i++)
		for (unsigned k = 0; k < CLASSES; k++) {
			unsigned long long n = atomic_load(&m->routes[i].by_class[k]);

			if (n)
				buf_printf(out, "topiary_requests_total{method=\"%s\",route=\"%s\",code=\"%uxx\"} %llu\n",
					   m->routes[i].method, m->routes[i].pattern, k + 1, n);
		}
}

static void durations_of(struct buf *out, struct route_counts *r)
{
	static const char name[] = "topiary_request_duration_seconds";
	unsigned long long sum = 0;

	for (size_t i = 0; i <= COUNT(bounds); i++) {
		sum += atomic_load(&r->in_bucket[i]);
		buf_printf(out, "%s_bucket{method=\"%s\",route=\"%s\",le=\"", name, r->method, r->pattern);
		if (i < COUNT(bounds))
			buf_printf(out, "%g\"} %llu\n", bounds[i], sum);
		else
			buf_printf(out, "+Inf\"} %llu\n", sum);
	}
	buf_printf(out, "%s_sum{method=\"%s\",route=\"%s\"} %.6f\n", name, r->method, r->pattern, atomic_load(&r->microseconds) / 1e6);
	buf_printf(out, "%s_count{method=\"%s\",route=\"%s\"} %llu\n", name, r->method, r->pattern, sum);
}

static void durations(struct buf *out, struct metrics *m)
{
	head(out, "request_duration_seconds", "histogram", "From the headers of a request to its reply.");
	for (unsigned i = 0; i < m->nroutes; i++)
		durations_of(out, &m->routes[i]);
}

static void exports(struct buf *out, struct committer *committer)
{
	struct commit_counts n = {0};
	const struct { const char *result; const unsigned long long *count; } lines[] = {
		{ "kept", &n.kept }, { "known", &n.known }, { "stale", &n.stale }, { "failed", &n.failed },
	};

	committer_counts(committer, &n);
	head(out, "exports_total", "counter", "Exports, by what became of them.");
	for (size_t i = 0; i < COUNT(lines); i++)
		buf_printf(out, "topiary_exports_total{result=\"%s\"} %llu\n", lines[i].result, *lines[i].count);
	one(out, "batches_total", "counter", "Transactions that exports were committed in.", n.batches);
}

/* What the database alone knows. */
static const char counts_sql[] =
	"SELECT (SELECT count(*) FROM node), (SELECT count(*) FROM drift WHERE severity = 'cosmetic'),"
	" (SELECT count(*) FROM drift WHERE severity = 'wiring'), (SELECT count(*) FROM drift WHERE severity = 'capacity'),"
	" (SELECT count(*) FROM class), (SELECT count(*) FROM base), (SELECT count(*) FROM past),"
	" (SELECT coalesce(sum(octet_length(diff)), 0) FROM node), (SELECT coalesce(sum(octet_length(bytes)), 0) FROM base),"
	" (SELECT coalesce(sum(octet_length(diff)), 0) FROM past), (SELECT coalesce(sum(xml_bytes::bigint), 0) FROM node)";

static const struct sql_metric {
	const char *name, *label, *help;	/* help NULL: of the same name as the one before */
} sql_metrics[] = {
	{ "nodes", "", "Nodes that exported a topology." },
	{ "nodes_drifted", "{severity=\"cosmetic\"}", "Nodes that are not what their class is, by the gravest change." },
	{ "nodes_drifted", "{severity=\"wiring\"}", NULL },
	{ "nodes_drifted", "{severity=\"capacity\"}", NULL },
	{ "classes", "", "Classes of nodes expected to be alike." },
	{ "bases", "", "Whole documents stored." },
	{ "history_entries", "", "Earlier exports kept." },
	{ "stored_bytes", "{what=\"nodes\"}", "Bytes that topologies take." },
	{ "stored_bytes", "{what=\"bases\"}", NULL },
	{ "stored_bytes", "{what=\"history\"}", NULL },
	{ "xml_bytes", "", "Bytes of XML that the nodes' present topologies stand for." },
};

static void sql_text(struct buf *out, const PGresult *r)
{
	one(out, "postgresql_up", "gauge", "Whether PostgreSQL answers.", r != NULL);
	for (size_t i = 0; r && i < COUNT(sql_metrics); i++) {
		const struct sql_metric *m = &sql_metrics[i];

		if (m->help)
			head(out, m->name, "gauge", m->help);
		buf_printf(out, "topiary_%s%s %s\n", m->name, m->label, PQgetvalue(r, 0, i));
	}
}

/* However many ask, PostgreSQL is asked once in a while. */
static void from_sql(struct buf *out, struct service *s)
{
	struct metrics *m = s->metrics;
	struct timespec now;
	struct db *db;
	PGresult *r;
	struct err e;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&m->lock);
	if (!m->from_sql.len || now.tv_sec >= m->asked + REMEMBERED) {
		db = db_take(s->readers, &e);
		r = db ? db_query(db, &e, counts_sql, 0, NULL) : NULL;
		buf_free(&m->from_sql);
		sql_text(&m->from_sql, r);
		PQclear(r);
		db_give(s->readers, db);
		clock_gettime(CLOCK_MONOTONIC, &now);
		m->asked = now.tv_sec;
	}
	buf_add(out, m->from_sql.data, m->from_sql.len);
	pthread_mutex_unlock(&m->lock);
}

static void snapshot_age(struct buf *out, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		one(out, "snapshot_changed_timestamp_seconds", "gauge", "When the snapshot file last changed.", st.st_mtime);
}

void read_metrics(struct call *c)
{
	struct service *s = c->service;
	struct buf out = {0};

	from_sql(&out, s);
	exports(&out, s->committer);
	one(&out, "connections", "gauge", "Open connections.", c->busy);
	one(&out, "request_body_bytes", "gauge", "Bytes of requests held.", atomic_load(&s->bodies.used));
	one(&out, "reply_body_bytes", "gauge", "Bytes of replies held.", atomic_load(&s->replies.used));
	snapshot_age(&out, s->settings.snapshot_file);
	requests(&out, s->metrics);
	durations(&out, s->metrics);
	call_body(c, "text/plain; version=0.0.4; charset=utf-8", &out);
}
