/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"

#include "peer.h"
#include "pg_servers.h"

#include "store/identity.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUTES_MAX 48
#define CLASSES 5	/* of status: 1xx to 5xx */
#define CACHE_SECONDS 5	/* how long results of SQL are reused */

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
	double asked;
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

static void add_help(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP topiary_%s %s\n# TYPE topiary_%s %s\n", name, help, name, type);
}

static void add_metric(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	add_help(out, name, type, help);
	buf_printf(out, "topiary_%s %.15g\n", name, value);
}

static void add_requests(struct buf *out, struct metrics *m)
{
	add_help(out, "requests_total", "counter", "Requests answered, by class of the HTTP status.");
	for (unsigned i = 0; i < m->nroutes; i++)
		for (unsigned k = 0; k < CLASSES; k++) {
			unsigned long long n = atomic_load(&m->routes[i].by_class[k]);

			if (n)
				buf_printf(out, "topiary_requests_total{method=\"%s\",route=\"%s\",code=\"%uxx\"}"
						" %llu\n", m->routes[i].method, m->routes[i].pattern, k + 1, n);
		}
}

static void add_route_durations(struct buf *out, struct route_counts *r)
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
	buf_printf(out, "%s_sum{method=\"%s\",route=\"%s\"} %.6f\n", name, r->method, r->pattern,
		   atomic_load(&r->microseconds) / 1e6);
	buf_printf(out, "%s_count{method=\"%s\",route=\"%s\"} %llu\n", name, r->method, r->pattern, sum);
}

static void add_durations(struct buf *out, struct metrics *m)
{
	add_help(out, "request_duration_seconds", "histogram", "Time from the headers of a request to its reply.");
	for (unsigned i = 0; i < m->nroutes; i++)
		add_route_durations(out, &m->routes[i]);
}

static void add_exports(struct buf *out, struct committer *committer)
{
	struct commit_counts n = {0};
	const struct { const char *result; const unsigned long long *count; } lines[] = {
		{ "kept", &n.kept }, { "known", &n.known }, { "stale", &n.stale }, { "failed", &n.failed },
	};

	committer_counts(committer, &n);
	add_help(out, "exports_total", "counter", "Exports by result: kept (stored), known (unchanged), stale,"
						  " failed.");
	for (size_t i = 0; i < COUNT(lines); i++)
		buf_printf(out, "topiary_exports_total{result=\"%s\"} %llu\n", lines[i].result, *lines[i].count);
	add_metric(out, "batches_total", "counter", "Transactions in which exports were committed.", n.batches);
}

static void add_database(struct buf *out, struct identity *i)
{
	struct identity_counts n;

	identity_counts(i, &n);
	add_metric(out, "database_timeline", "gauge", "PostgreSQL's timeline, which increases with each failover.",
		   n.timeline);
	add_metric(out, "database_changes_total", "counter", "Times the database was replaced: restored, promoted or"
							     " created anew.", n.changes);
	add_metric(out, "database_refused_total", "counter", "Connections refused because the server is an old"
							     " primary, still running after a failover.", n.refused);
}

/* Values that only the database has. */
static const char counts_sql[] =
	"SELECT (SELECT count(*) FROM node), (SELECT count(*) FROM node_drift WHERE severity = 'cosmetic'),"
	" (SELECT count(*) FROM node_drift WHERE severity = 'wiring'), (SELECT count(*) FROM node_drift WHERE severity"
	" = 'slow'), (SELECT count(*) FROM node_drift WHERE severity = 'capacity'), (SELECT count(*) FROM node_costs),"
	" (SELECT count(*) FROM class), (SELECT count(*) FROM base), (SELECT count(*) FROM past),"
	" (SELECT coalesce(sum(octet_length(diff)), 0) FROM node), (SELECT coalesce(sum(octet_length(bytes)), 0) FROM"
	" base),"
	" (SELECT coalesce(sum(octet_length(diff)), 0) FROM past), (SELECT coalesce(sum(xml_bytes::bigint), 0) FROM"
	" node), (SELECT count(*) FROM unreadable u JOIN node n ON n.name = u.node AND n.since = u.since),"
	" (SELECT count(*) FROM unreadable u JOIN past o ON o.node = u.node AND o.since = u.since),"
	" (SELECT coalesce(extract(epoch FROM verified), 0) FROM registry)";

static const struct sql_metric {
	const char *name, *label, *help;	/* help NULL: same metric as the row before */
} sql_metrics[] = {
	{ "nodes", "", "Nodes that exported a topology." },
	{ "nodes_drifted", "{severity=\"cosmetic\"}", "Nodes that have drifted from their class, by highest"
						      " severity." },
	{ "nodes_drifted", "{severity=\"wiring\"}", NULL },
	{ "nodes_drifted", "{severity=\"slow\"}", NULL },
	{ "nodes_drifted", "{severity=\"capacity\"}", NULL },
	{ "nodes_measured", "", "Nodes whose latency and bandwidth were measured." },
	{ "classes", "", "Classes of nodes that are expected to be identical but for serial numbers and addresses." },
	{ "bases", "", "Base documents, stored as a whole." },
	{ "history_entries", "", "Former exports stored." },
	{ "stored_bytes", "{what=\"nodes\"}", "Bytes of stored topologies." },
	{ "stored_bytes", "{what=\"bases\"}", NULL },
	{ "stored_bytes", "{what=\"history\"}", NULL },
	{ "xml_bytes", "", "Bytes of the nodes' present topologies as XML." },
	{ "nodes_unreadable", "", "Nodes whose stored topology cannot be rebuilt; they are asked to send it again." },
	{ "history_unreadable", "", "Former exports that cannot be rebuilt." },
	{ "checked_timestamp_seconds", "", "Time of the last complete check of all stored topologies; 0: none yet." },
};

static void sql_text(struct buf *out, const PGresult *r)
{
	add_metric(out, "postgresql_up", "gauge", "Whether PostgreSQL answers.", r != NULL);
	for (size_t i = 0; r && i < COUNT(sql_metrics); i++) {
		const struct sql_metric *m = &sql_metrics[i];

		if (m->help)
			add_help(out, m->name, "gauge", m->help);
		buf_printf(out, "topiary_%s%s %s\n", m->name, m->label, PQgetvalue(r, 0, i));
	}
}

/* PostgreSQL is queried once in CACHE_SECONDS, however many scrape. */
static void add_sql(struct buf *out, struct service *s)
{
	struct metrics *m = s->metrics;
	struct db *db;
	PGresult *r;
	struct err e;

	pthread_mutex_lock(&m->lock);
	if (!m->from_sql.len || clock_now() >= m->asked + CACHE_SECONDS) {
		db = db_acquire(s->lists, &e);
		r = db ? db_query(db, &e, counts_sql, 0, NULL) : NULL;
		buf_free(&m->from_sql);
		sql_text(&m->from_sql, r);
		PQclear(r);
		db_release(s->lists, db);
		m->asked = clock_now();
	}
	buf_add(out, m->from_sql.data, m->from_sql.len);
	pthread_mutex_unlock(&m->lock);
}

static void add_servers(struct buf *out, struct pg_servers *hosts)
{
	bool primary, reached;
	const char *name;

	add_metric(out, "postgresql_split", "gauge", "Whether several PostgreSQL servers accept writes; exports are"
						     " refused then.", pg_servers_split(hosts));
	if (!pg_servers_state(hosts, 0, &primary, &reached))
		return;
	add_help(out, "postgresql_server", "gauge", "PostgreSQL servers named in Database, 1 for the role found last.");
	for (unsigned i = 0; (name = pg_servers_state(hosts, i, &primary, &reached)); i++)
		buf_printf(out, "topiary_postgresql_server{server=\"%s\",role=\"%s\"} 1\n", name,
			   !reached ? "unreachable" : primary ? "primary" : "standby");
}

static void add_snapshot_age(struct buf *out, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		add_metric(out, "snapshot_changed_timestamp_seconds", "gauge",
			   "Time of the last change of the snapshot file.", st.st_mtime);
}

void read_metrics(struct call *c)
{
	struct service *s = c->service;
	struct buf out = {0};

	add_sql(&out, s);
	add_servers(&out, s->hosts);
	add_exports(&out, s->committer);
	add_database(&out, s->identity);
	add_metric(&out, "connections", "gauge", "Open connections.", c->busy);
	add_metric(&out, "request_body_bytes", "gauge", "Bytes of request bodies in memory.",
		   atomic_load(&s->bodies.used));
	add_metric(&out, "reply_body_bytes", "gauge", "Bytes of reply bodies in memory.",
		   atomic_load(&s->replies.used));
	add_snapshot_age(&out, s->settings.snapshot_file);
	add_metric(&out, "snapshot_current", "gauge",
		   "1 if the snapshot file is what the database has, 0 if it cannot be written or was kept.",
		   publisher_is_current(s->publisher));
	add_metric(&out, "known_nodes", "gauge", "Nodes in KnownNodes, 0 without it.", peers_known(s->peers));
	add_requests(&out, s->metrics);
	add_durations(&out, s->metrics);
	call_body(c, "text/plain; version=0.0.4; charset=utf-8", &out);
}
