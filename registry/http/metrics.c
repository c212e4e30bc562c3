/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "metrics.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/settings_here.h"
#include "peer.h"
#include "pg_servers.h"
#include "store/identity.h"

/*
 * Notes
 *
 * The counters of routes and controllers are atomic; routes are added before the server starts. The lock is of what SQL
 * returned, and is held while PostgreSQL is asked: others wait for that answer, and do not ask themselves.
 */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUTES_MAX 48
#define CLASSES 5	/* of status: 1xx to 5xx */
#define CONTROLLERS 16	/* of ControllerHosts that have a metric */
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
	atomic_llong current[CONTROLLERS];	/* in the order of ControllerHosts: time, 0: not since the start */
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

void metrics_add(struct metrics *m, const char *method, const char *pattern)
{
	assert(m->nroutes < ROUTES_MAX);
	m->routes[m->nroutes].method = method;
	m->routes[m->nroutes++].pattern = pattern;
}

void metrics_observe(struct metrics *m, int route, unsigned status, double seconds)
{
	struct route_counts *r = &m->routes[route];
	size_t i = 0;

	assert(route >= 0 && (unsigned) route < m->nroutes);
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

static void add_routes(struct buf *out, struct metrics *m)
{
	static const char name[] = "topiary_request_duration_seconds";
	struct route_counts *r, *end = m->routes + m->nroutes;
	unsigned long long n;

	add_help(out, "requests_total", "counter", "Requests answered, by class of the HTTP status.");
	for (r = m->routes; r < end; r++)
		for (unsigned k = 0; k < CLASSES; k++)
			if ((n = atomic_load(&r->by_class[k])))
				buf_printf(out, "topiary_requests_total{method=\"%s\",route=\"%s\",code=\"%uxx\"}"
						" %llu\n", r->method, r->pattern, k + 1, n);
	add_help(out, "request_duration_seconds", "histogram", "Time from the headers of a request to its reply.");
	for (r = m->routes; r < end; r++) {
		n = 0;
		for (size_t i = 0; i <= COUNT(bounds); i++) {
			n += atomic_load(&r->in_bucket[i]);
			buf_printf(out, "%s_bucket{method=\"%s\",route=\"%s\",le=\"", name, r->method, r->pattern);
			buf_printf(out, i < COUNT(bounds) ? "%g" : "+Inf", i < COUNT(bounds) ? bounds[i] : 0);
			buf_printf(out, "\"} %llu\n", n);
		}
		buf_printf(out, "%s_sum{method=\"%s\",route=\"%s\"} %.6f\n", name, r->method, r->pattern,
			   atomic_load(&r->microseconds) / 1e6);
		buf_printf(out, "%s_count{method=\"%s\",route=\"%s\"} %llu\n", name, r->method, r->pattern, n);
	}
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
		add_metric(&m->from_sql, "postgresql_up", "gauge", "Whether PostgreSQL answers.", r != NULL);
		for (size_t i = 0; r && i < COUNT(sql_metrics); i++) {
			if (sql_metrics[i].help)
				add_help(&m->from_sql, sql_metrics[i].name, "gauge", sql_metrics[i].help);
			buf_printf(&m->from_sql, "topiary_%s%s %s\n", sql_metrics[i].name, sql_metrics[i].label,
				   PQgetvalue(r, 0, i));
		}
		PQclear(r);
		db_release(db);
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

/* When each host of ControllerHosts had the current snapshot: set for the one that sent, or added to out. */
struct controllers {
	struct call *call;
	struct buf *out;
	unsigned n;
};

static bool controller_visit(void *user, const char *host)
{
	struct controllers *s = user;
	atomic_llong *current = &s->call->service->metrics->current[s->n];

	if (s->out)
		buf_printf(s->out, "topiary_controller_snapshot_timestamp_seconds{host=\"%s\"} %lld\n", host,
			   atomic_load(current));
	else if (peer_is_host(s->call, host))
		atomic_store(current, time(NULL));
	return ++s->n == CONTROLLERS;
}

void metrics_snapshot_current(struct call *c)
{
	settings_list_any(c->service->settings.controller_hosts, controller_visit, &(struct controllers){ .call = c });
}

void read_metrics(struct call *c)
{
	struct service *s = c->service;
	struct identity_counts database;
	struct buf out = {0};
	struct stat st;

	add_sql(&out, s);
	add_servers(&out, s->hosts);
	add_exports(&out, s->committer);
	identity_counts(s->identity, &database);
	add_metric(&out, "database_timeline", "gauge", "PostgreSQL's timeline, which increases with each failover.",
		   database.timeline);
	add_metric(&out, "database_changes_total", "counter", "Times the database was replaced: restored, promoted or"
							      " created anew.", database.changes);
	add_metric(&out, "database_refused_total", "counter", "Connections refused because the server is an old"
							      " primary, still running after a failover.",
		   database.refused);
	add_metric(&out, "connections", "gauge", "Open connections.", c->busy);
	add_metric(&out, "request_body_bytes", "gauge", "Bytes of request bodies in memory.",
		   atomic_load(&s->bodies.used));
	add_metric(&out, "reply_body_bytes", "gauge", "Bytes of reply bodies in memory.",
		   atomic_load(&s->replies.used));
	if (stat(s->settings.snapshot_file, &st) == 0)
		add_metric(&out, "snapshot_changed_timestamp_seconds", "gauge",
			   "Time of the last change of the snapshot file.", st.st_mtime);
	add_metric(&out, "snapshot_current", "gauge",
		   "1 if the snapshot file is what the database has, 0 if it cannot be written or was kept.",
		   publisher_is_current(s->publisher));
	add_help(&out, "controller_snapshot_timestamp_seconds", "gauge",
		 "Last time at which a host of ControllerHosts had the current snapshot; 0: not yet.");
	settings_list_any(s->settings.controller_hosts, controller_visit, &(struct controllers){ c, &out, 0 });
	add_metric(&out, "known_nodes", "gauge", "Nodes in KnownNodes, 0 without it.", peers_known(s->peers));
	add_routes(&out, s->metrics);
	call_body(c, "text/plain; version=0.0.4; charset=utf-8", &out);
}
