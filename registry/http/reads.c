/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include "base/clock.h"
#include "hwxml/redact.h"
#include "shape/hostlist.h"
#include "store/document.h"
#include "store/json_rows.h"
#include "upkeep/publish.h"

/*
 * Notes
 *
 * No data. Called in a worker. Connections are of the readers' pools, and the parser has a slot fewer for reads than it
 * has workers (parsing_reads), so that exports always find one.
 */
#define LIST_MAX (128u << 20)	/* 100,000 nodes take a third of it */
#define JSON "application/json"

#define NODE_SELECT \
	"SELECT node, shape, class, drift, stored, base, stored_bytes, xml_bytes, " \
	RFC3339("last_boot") " AS last_boot, " RFC3339_US("topology_since") " AS topology_since, cores, pus, sha256"

static const char nodes_sql[] = NODE_SELECT " FROM topiary_nodes"
	" WHERE ($1::text[] IS NULL OR node = ANY ($1)) AND ($2::text IS NULL OR shape = $2) AND ($3::text IS NULL OR"
	" class = $3)"
	" AND ($4::text IS NULL OR drift = $4 OR ($4 = 'any' AND drift IS NOT NULL)) ORDER BY node";

static const char node_sql[] = JSON_ROWS(NODE_SELECT
	", boot_id, seq, cores_only, hierarchy, allocation, detail, " RFC3339("costs_measured") " AS costs_measured"
	" FROM topiary_nodes WHERE node = $1");

static const char node_facts_sql[] =
	"SELECT object, fact, value FROM topiary_facts WHERE node = $1 AND ($2::text IS NULL OR lower(fact) ="
	" lower($2)) AND ($3::bool OR fact !~* '" REDACTED "') ORDER BY line";

static const char facts_sql[] = "SELECT node, object, value FROM topiary_facts WHERE fact = $1"
	" AND ($2::text[] IS NULL OR node = ANY ($2)) ORDER BY node, line";

static const char facts_value_sql[] = "SELECT node, object, value FROM topiary_find($1, $3)"
	" WHERE $2::text[] IS NULL OR node = ANY ($2) ORDER BY node, line";

#define DRIFT_SELECT \
	"SELECT n.node, n.class, d.severity, " RFC3339_US("d.since") " AS since, coalesce(d.changes, '[]') AS changes" \
	" FROM topiary_nodes n "
static const char node_drift_sql[] = JSON_ROWS(DRIFT_SELECT
	"LEFT JOIN node_drift d ON d.node = n.node WHERE n.node = $1");
static const char drift_sql[] = DRIFT_SELECT
	"JOIN node_drift d ON d.node = n.node WHERE ($1::text IS NULL OR d.severity = $1) ORDER BY n.node";

static const char node_costs_sql[] = "SELECT quantity, value, median, nodes, \"limit\", slow"
	" FROM topiary_node_costs WHERE node = $1 ORDER BY line";

/* A few rows with many nodes each, whose names follow. */
static const char shapes_sql[] = "SELECT row_to_json(s), n.names"
	" FROM (SELECT shape, nodes, cores, pus, cores_only, hierarchy, allocation FROM topiary_shapes) s"
	" JOIN (SELECT shape, string_agg(node, ',') AS names FROM topiary_nodes GROUP BY shape) n"
	" ON n.shape = s.shape ORDER BY s.shape";

static const char classes_sql[] = "SELECT row_to_json(c), n.names"
	" FROM (SELECT class, baseline, shape, detail, " RFC3339("created") " AS created, nodes, drifted"
	" FROM topiary_classes) c LEFT JOIN (SELECT class, string_agg(node, ',') AS names FROM topiary_nodes GROUP BY"
	" class) n ON n.class = c.class ORDER BY substr(c.class, 2)::integer";

/* Prefixes the message with the node, if there is one. */
static int fail_node(struct call *c, unsigned status, const char *text)
{
	return call_fail(c, status, "%s%s%s", c->node, *c->node ? ": " : "", text);
}

/* NULL with the reply filled. */
static PGresult *view_query(struct call *c, struct db *db, const char *sql, unsigned n, const struct db_value *values)
{
	struct err e;
	PGresult *r = db_query(db, &e, sql, n, values);

	if (!r)
		fail_node(c, 503, e.text);
	return r;
}

/* {FIRST"name":[rows],"truncated":false}; first: members before it, each followed by a comma. */
static void reply_rows(struct call *c, const char *first, const char *name, const char *sql, unsigned n,
		       const struct db_value *values)
{
	struct db *db = call_acquire_reader(c);
	struct buf out = {0};
	struct err e;
	bool more;

	if (!db)
		return;
	buf_printf(&out, "{%s\"%s\":", first, name);
	if (json_rows_list(db, &out, LIST_MAX, &more, sql, n, values, &e)) {
		buf_free(&out);
		fail_node(c, 503, e.text);
	} else {
		buf_printf(&out, ",\"truncated\":%s}\n", more ? "true" : "false");
		call_body(c, JSON, &out);
	}
	db_release(db);
}

void read_nodes(struct call *c)
{
	struct buf hosts = {0};

	if (query_hosts(c, &hosts) == 0)
		reply_rows(c, "", "nodes", nodes_sql, 4,
		     (struct db_value[]){ DB_TEXT(hosts.data), DB_TEXT(call_param(c, "shape")),
					  DB_TEXT(call_param(c, "class")),
					  DB_TEXT(call_param(c, "drift")) });
	buf_free(&hosts);
}

/* The row of a node as an object; 404 when there is none. */
static void one_node(struct call *c, const char *sql)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, sql, 1, &DB_TEXT(c->node)) : NULL;
	struct buf out = {0};

	if (r && !PQntuples(r)) {
		fail_node(c, 404, "not in the registry");
	} else if (r) {
		buf_printf(&out, "%s\n", PQgetvalue(r, 0, 0));
		call_body(c, JSON, &out);
	}
	PQclear(r);
	db_release(db);
}

void read_node(struct call *c)
{
	one_node(c, node_sql);
}

void read_node_drift(struct call *c)
{
	one_node(c, node_drift_sql);
}

/* Rows about a node that exists. */
static void reply_node_rows(struct call *c, const char *name, const char *sql, unsigned n,
			    const struct db_value *values)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, "SELECT 1 FROM topiary_nodes WHERE node = $1", 1,
				      &DB_TEXT(c->node)) : NULL;
	bool known = r && PQntuples(r);
	struct buf first = {0};

	PQclear(r);
	db_release(db);
	if (r && !known)
		fail_node(c, 404, "not in the registry");
	if (!known)
		return;
	buf_printf(&first, "\"node\":\"%s\",", c->node);
	reply_rows(c, first.failed ? "" : first.data, name, sql, n, values);
	buf_free(&first);
}

void read_node_facts(struct call *c)
{
	reply_node_rows(c, "facts", node_facts_sql, 3,
			(struct db_value[]){ DB_TEXT(c->node), DB_TEXT(call_param(c, "fact")),
					     DB_TEXT(access_sees_serials(c) ? "t" : "f") });
}

void read_node_costs(struct call *c)
{
	reply_node_rows(c, "costs", node_costs_sql, 1, &DB_TEXT(c->node));
}

/* A fact's name as stored, matched in any case; as typed when no node has it. */
#define FACT_NAME "SELECT name, to_json(name) FROM (SELECT name FROM fact WHERE name = $1 UNION ALL SELECT name FROM" \
	" fact WHERE lower(name) = lower($1) UNION ALL SELECT name FROM node_fact WHERE lower(name) = lower($1)" \
	" UNION ALL SELECT $1) n LIMIT 1"

void read_facts(struct call *c)
{
	const char *fact = call_param(c, "fact"), *value = call_param(c, "value");
	struct buf hosts = {0}, first = {0};
	PGresult *r = NULL;
	struct db *db;

	if (!fact) {
		call_fail(c, 400, "fact: the name of a fact is required");
		return;
	}
	if ((db = call_acquire_reader(c)))
		r = view_query(c, db, FACT_NAME, 1, &DB_TEXT(fact));
	db_release(db);
	if (r && query_hosts(c, &hosts) == 0) {
		fact = PQgetvalue(r, 0, 0);
		buf_printf(&first, "\"fact\":%s,", PQgetvalue(r, 0, 1));
		/* PostgreSQL folds letters that the check of the name as typed does not. */
		if (access_admit_fact(c, fact) == 0)
			reply_rows(c, first.failed ? "" : first.data, "facts", value ? facts_value_sql : facts_sql,
				   value ? 3 : 2,
				   (struct db_value[]){ DB_TEXT(fact), DB_TEXT(hosts.data), DB_TEXT(value) });
	}
	PQclear(r);
	buf_free(&hosts);
	buf_free(&first);
}

void read_drift(struct call *c)
{
	reply_rows(c, "", "drift", drift_sql, 1, &DB_TEXT(call_param(c, "severity")));
}

/* Each row's object has the names of its nodes as its last member, hosts. */
static void reply_groups(struct call *c, const char *name, const char *sql)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, sql, 0, NULL) : NULL;
	struct buf out = {0};
	struct err e;
	int rc = 0;

	buf_printf(&out, "{\"%s\":[", name);
	for (int i = 0; r && rc == 0 && i < PQntuples(r); i++) {
		const char *object = PQgetvalue(r, i, 0), *names = PQgetvalue(r, i, 1);
		struct buf hosts = {0};

		rc = *names ? hostlist_fold(names, &hosts, &e) : 0;
		buf_printf(&out, "%s%.*s,\"hosts\":\"%s\"}", i ? "," : "", (int) strlen(object) - 1, object,
			   hosts.data ? hosts.data : "");
		buf_free(&hosts);
	}
	buf_puts(&out, "]}\n");
	if (r && rc)
		fail_node(c, 503, e.text);
	else if (r)
		call_body(c, JSON, &out);
	buf_free(&out);
	PQclear(r);
	db_release(db);
}

void read_shapes(struct call *c)
{
	reply_groups(c, "shapes", shapes_sql);
}

void read_classes(struct call *c)
{
	reply_groups(c, "classes", classes_sql);
}

void read_snapshot(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf text = {0};
	struct err e;

	if (db && publish_text(db, &text, &e))
		fail_node(c, 503, e.text);
	else if (db)
		call_body(c, "text/plain; charset=utf-8", &text);
	db_release(db);
}

/* --- whole documents --- */

#define COMPARED 20	/* entries of a history; each comparison costs a worker some milliseconds */
#define ENTRIES "100"
#define WAIT_SECONDS 4	/* of a read, for its turn of the parser */

static const unsigned status_of[] = { [DOCUMENT_ABSENT] = 404, [DOCUMENT_BAD_TIME] = 400, [DOCUMENT_FAILED] = 503 };

/* 0, or -1 with the reply filled. */
static int acquire_parser(struct call *c)
{
	return clock_take(&c->service->parsing_reads, clock_now() + WAIT_SECONDS) == 0 ? 0 :
	       call_fail(c, 503, "%s: too many reads need the parser; try again later", c->node);
}

static void release_parser(struct call *c)
{
	sem_post(&c->service->parsing_reads);
}

/*
 * The canonical form, without what the reader may not see: each has a hash of its own. 0, or -1 with the reply filled.
 */
static int document_prepare(struct call *c, struct buf *xml)
{
	enum parser_result rc = PARSER_OK;
	struct buf other = {0};
	struct err e;

	if (call_param(c, "form")) {
		if (acquire_parser(c))
			return -1;
		rc = parser_canon(c->service->parser, c->node, xml, &other, &e);
		release_parser(c);
		if (rc != PARSER_OK)
			return call_fail(c, 503, "%s", e.text);
		buf_free(xml);
		*xml = other;
		other = (struct buf){0};
	}
	if (!access_sees_serials(c)) {
		redact_xml(xml->data, xml->len, &other);
		buf_free(xml);
		if (other.failed)
			return call_fail(c, 503, "%s: out of memory", c->node);
		*xml = other;
	}
	if (call_param(c, "form") || !access_sees_serials(c))
		hash_hex(xml->data, xml->len, c->reply.sha256);
	return 0;
}

void read_topology(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf xml = {0};
	enum document_result rc;
	struct err e;

	if (!db)
		return;
	rc = document_load(c->service->bases, db, c->node, call_param(c, "at"), &xml, c->reply.sha256, &e);
	db_release(db);
	if (rc != DOCUMENT_OK)
		call_fail(c, status_of[rc], "%s", e.text);
	else if (document_prepare(c, &xml) == 0)
		call_body(c, "application/xml", &xml);
	buf_free(&xml);
	if (c->reply.status != 200)
		c->reply.sha256[0] = '\0';
}

enum { OBJECT, SINCE };
static const char history_sql[] = "SELECT row_to_json(h), h.since FROM (SELECT " RFC3339_US("since") " AS since, "
	RFC3339_US("until") " AS until, sha256, shape, stored, stored_bytes, xml_bytes FROM topiary_history"
	" WHERE node = $1 ORDER BY topiary_history.since DESC LIMIT $2::integer + 1) h";

static int entry_xml(struct call *c, struct db *db, const PGresult *r, int row, struct buf *out)
{
	return document_load(c->service->bases, db, c->node, PQgetvalue(r, row, SINCE), out, NULL, NULL) ? -1 : 0;
}

/* NULL when out of memory. */
static void changes_redact(char **json)
{
	json_t *list = json_loads(*json, 0, NULL);

	for (size_t i = json_array_size(list); i-- > 0;)
		if (redact_applies(json_string_value(json_object_get(json_array_get(list, i), "what")) ?: ""))
			json_array_remove(list, i);
	free(*json);
	*json = list ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
}

/*
 * Each with its changes from the one before in time, null when they cannot be determined. The query returns one row
 * more than is shown, for the last one to be compared with.
 */
static void add_entries(struct buf *out, struct call *c, struct db *db, const PGresult *r, int shown)
{
	struct buf newer = {0}, older = {0};

	entry_xml(c, db, r, 0, &newer);
	for (int i = 0; i < shown; i++) {
		const char *object = PQgetvalue(r, i, OBJECT);
		char *json = NULL;
		int severity;

		if (i == COMPARED)
			buf_free(&newer);
		if (newer.data && i + 1 < PQntuples(r) && entry_xml(c, db, r, i + 1, &older) == 0 &&
		    parser_compare(c->service->parser, c->node, &older, &newer, 0, NULL, &json, &severity,
				   NULL) != PARSER_OK)
			json = NULL;
		if (json && !access_sees_serials(c))
			changes_redact(&json);
		buf_printf(out, "%s%.*s,\"changes\":", i ? "," : "", (int) strlen(object) - 1, object);
		buf_puts(out, json ? json : "null");
		buf_puts(out, "}");
		free(json);
		buf_free(&newer);
		newer = older;
		older = (struct buf){0};
	}
	buf_free(&newer);
}

void read_history(struct call *c)
{
	const char *limit = call_param(c, "limit") ? call_param(c, "limit") : ENTRIES;
	struct buf out = {0};
	struct err e;
	PGresult *r = NULL;
	struct db *db;
	int n = 0;

	if (acquire_parser(c))
		return;
	if ((db = call_acquire_reader(c)))
		r = db_query(db, &e, history_sql, 2, (struct db_value[]){ DB_TEXT(c->node), DB_TEXT(limit) });
	if (r)
		n = PQntuples(r);
	if (n) {
		buf_printf(&out, "{\"node\":\"%s\",\"history\":[", c->node);
		add_entries(&out, c, db, r, n > atoi(limit) ? n - 1 : n);
		buf_printf(&out, "],\"truncated\":%s}\n", n > atoi(limit) ? "true" : "false");
		call_body(c, "application/json", &out);
	} else if (r) {
		call_fail(c, 404, "%s: not in the registry", c->node);
	} else if (db) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	}
	PQclear(r);
	db_release(db);
	release_parser(c);
}
