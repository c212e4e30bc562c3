/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include "upkeep/publish.h"
#include "store/json_rows.h"
#include "shape/hostlist.h"
#include "hwxml/redact.h"

#define LIST_MAX (128u << 20)	/* 100,000 nodes take a third of it */
#define JSON "application/json"

#define NODE_COLUMNS \
	{ "node", COLUMN_TEXT }, { "shape", COLUMN_TEXT }, { "class", COLUMN_TEXT }, { "drift", COLUMN_TEXT }, \
	{ "stored", COLUMN_TEXT }, { "base", COLUMN_TEXT }, { "stored_bytes", COLUMN_PLAIN }, \
		{ "xml_bytes", COLUMN_PLAIN }, \
	{ "last_boot", COLUMN_TEXT }, { "topology_since", COLUMN_TEXT }, { "cores", COLUMN_PLAIN }, \
		{ "pus", COLUMN_PLAIN }, \
	{ "sha256", COLUMN_TEXT }
#define NODE_SELECT \
	"SELECT node, shape, class, drift, stored, base, stored_bytes, xml_bytes, " RFC3339("last_boot") ", " \
	RFC3339_US("topology_since") ", cores, pus, sha256"

static const struct json_column nodes_columns[] = { NODE_COLUMNS, {0} };
static const char nodes_sql[] = NODE_SELECT " FROM topiary_nodes"
	" WHERE ($1::text[] IS NULL OR node = ANY ($1)) AND ($2::text IS NULL OR shape = $2) AND ($3::text IS NULL OR"
	" class = $3)"
	" AND ($4::text IS NULL OR drift = $4 OR ($4 = 'any' AND drift IS NOT NULL)) ORDER BY node";

static const struct json_column node_columns[] = {
	NODE_COLUMNS, { "boot_id", COLUMN_TEXT }, { "seq", COLUMN_PLAIN }, { "cores_only", COLUMN_TEXT },
		{ "hierarchy", COLUMN_TEXT },
	{ "allocation", COLUMN_TEXT }, { "detail", COLUMN_TEXT }, { "costs_measured", COLUMN_TEXT }, {0},
};
static const char node_sql[] = NODE_SELECT
	", boot_id, seq, cores_only, hierarchy, allocation, detail, " RFC3339("costs_measured")
	" FROM topiary_nodes WHERE node = $1";

static const struct json_column node_facts_columns[] = { { "object", COLUMN_TEXT }, { "fact", COLUMN_TEXT },
							 { "value", COLUMN_TEXT }, {0} };
static const char node_facts_sql[] =
	"SELECT object, fact, value FROM topiary_facts WHERE node = $1 AND ($2::text IS NULL OR lower(fact) ="
	" lower($2)) AND ($3::bool OR fact !~* '" REDACTED "') ORDER BY line";

static const struct json_column facts_columns[] = { { "node", COLUMN_TEXT }, { "object", COLUMN_TEXT },
						    { "value", COLUMN_TEXT }, {0} };
static const char facts_sql[] = "SELECT node, object, value FROM topiary_facts WHERE fact = $1"
	" AND ($2::text[] IS NULL OR node = ANY ($2)) ORDER BY node, line";

static const char facts_value_sql[] = "SELECT node, object, value FROM topiary_find($1, $3)"
	" WHERE $2::text[] IS NULL OR node = ANY ($2) ORDER BY node, line";

static const struct json_column drift_columns[] = {
	{ "node", COLUMN_TEXT }, { "class", COLUMN_TEXT }, { "severity", COLUMN_TEXT }, { "since", COLUMN_TEXT },
	{ "changes", COLUMN_PLAIN }, {0},
};
#define DRIFT_SELECT \
	"SELECT n.node, n.class, d.severity, " RFC3339_US("d.since") ", coalesce(d.changes, '[]') FROM topiary_nodes n "
static const char node_drift_sql[] = DRIFT_SELECT "LEFT JOIN node_drift d ON d.node = n.node WHERE n.node = $1";
static const char drift_sql[] = DRIFT_SELECT
	"JOIN node_drift d ON d.node = n.node WHERE ($1::text IS NULL OR d.severity = $1) ORDER BY n.node";

static const struct json_column costs_columns[] = {
	{ "quantity", COLUMN_TEXT }, { "value", COLUMN_PLAIN }, { "median", COLUMN_PLAIN }, { "nodes", COLUMN_PLAIN },
	{ "limit", COLUMN_PLAIN }, { "slow", COLUMN_PLAIN }, {0},
};
static const char node_costs_sql[] = "SELECT quantity, value, median, nodes, \"limit\", to_json(slow)"
	" FROM topiary_node_costs WHERE node = $1 ORDER BY line";

static const struct json_column shapes_columns[] = {
	{ "shape", COLUMN_TEXT }, { "nodes", COLUMN_PLAIN }, { "cores", COLUMN_PLAIN }, { "pus", COLUMN_PLAIN },
	{ "cores_only", COLUMN_TEXT }, { "hierarchy", COLUMN_TEXT }, { "allocation", COLUMN_TEXT },
		{ "names", COLUMN_HIDDEN }, {0},
};
static const char shapes_sql[] = "SELECT s.shape, s.nodes, s.cores, s.pus, s.cores_only, s.hierarchy, s.allocation,"
	" n.names"
	" FROM topiary_shapes s JOIN (SELECT shape, string_agg(node, ',') AS names FROM topiary_nodes GROUP BY shape) n"
	" ON n.shape = s.shape ORDER BY s.shape";

static const struct json_column classes_columns[] = {
	{ "class", COLUMN_TEXT }, { "baseline", COLUMN_TEXT }, { "shape", COLUMN_TEXT }, { "detail", COLUMN_TEXT },
	{ "created", COLUMN_TEXT }, { "nodes", COLUMN_PLAIN }, { "drifted", COLUMN_PLAIN }, { "names", COLUMN_HIDDEN },
		{0},
};
static const char classes_sql[] = "SELECT c.class, c.baseline, c.shape, c.detail,"
	" " RFC3339("c.created") ", c.nodes, c.drifted, n.names"
	" FROM topiary_classes c LEFT JOIN (SELECT class, string_agg(node, ',') AS names FROM topiary_nodes GROUP BY"
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

void reply_rows(struct call *c, const char *first, const char *name, const struct json_column *columns, const char *sql,
		unsigned n, const struct db_value *values)
{
	struct db *db = call_acquire_reader(c);
	struct buf out = {0};
	struct err e;
	bool more;

	if (!db)
		return;
	buf_printf(&out, "{%s\"%s\":", first, name);
	if (json_rows_list(db, &out, LIST_MAX, &more, columns, sql, n, values, &e)) {
		buf_free(&out);
		fail_node(c, 503, e.text);
	} else {
		buf_printf(&out, ",\"truncated\":%s}\n", more ? "true" : "false");
		call_body(c, JSON, &out);
	}
	call_release(c, db);
}

void read_nodes(struct call *c)
{
	struct buf hosts = {0};

	if (query_hosts(c, &hosts) == 0)
		reply_rows(c, "", "nodes", nodes_columns, nodes_sql, 4,
		     (struct db_value[]){ DB_TEXT(hosts.data), DB_TEXT(call_param(c, "shape")),
					  DB_TEXT(call_param(c, "class")),
					  DB_TEXT(call_param(c, "drift")) });
	buf_free(&hosts);
}

/* The row of a node as an object; 404 when there is none. */
static void one_node(struct call *c, const struct json_column *columns, const char *sql)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, sql, 1, &DB_TEXT(c->node)) : NULL;
	struct buf out = {0};

	if (r && !PQntuples(r)) {
		fail_node(c, 404, "not in the registry");
	} else if (r) {
		buf_puts(&out, "{");
		json_rows_members(&out, r, 0, columns);
		buf_puts(&out, "}\n");
		call_body(c, JSON, &out);
	}
	PQclear(r);
	call_release(c, db);
}

void read_node(struct call *c)
{
	one_node(c, node_columns, node_sql);
}

void read_node_drift(struct call *c)
{
	one_node(c, drift_columns, node_drift_sql);
}

/* Does the node exist? Otherwise the reply is filled. */
static bool node_known(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, "SELECT 1 FROM topiary_nodes WHERE node = $1", 1,
				      &DB_TEXT(c->node)) : NULL;
	bool known = r && PQntuples(r);

	if (r && !known)
		fail_node(c, 404, "not in the registry");
	PQclear(r);
	call_release(c, db);
	return known;
}

static void reply_node_rows(struct call *c, const char *name, const struct json_column *columns, const char *sql,
			    unsigned n, const struct db_value *values)
{
	struct buf first = {0};

	if (!node_known(c))
		return;
	buf_printf(&first, "\"node\":\"%s\",", c->node);
	reply_rows(c, first.failed ? "" : first.data, name, columns, sql, n, values);
	buf_free(&first);
}

void read_node_facts(struct call *c)
{
	reply_node_rows(c, "facts", node_facts_columns, node_facts_sql, 3,
			(struct db_value[]){ DB_TEXT(c->node), DB_TEXT(call_param(c, "fact")),
					     DB_TEXT(access_sees_serials(c) ? "t" : "f") });
}

void read_node_costs(struct call *c)
{
	reply_node_rows(c, "costs", costs_columns, node_costs_sql, 1, &DB_TEXT(c->node));
}

#define FACT_NAME "SELECT name FROM fact WHERE name = $1 UNION ALL SELECT name FROM fact WHERE lower(name) =" \
	" lower($1) UNION ALL SELECT name FROM node_fact WHERE lower(name) = lower($1) LIMIT 1"

/* A fact's name as stored, matched in any case; as typed when no node has it. 0, or -1 with the reply filled. */
static int canonical_fact_name(struct call *c, const char *typed, struct buf *out)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, FACT_NAME, 1, &DB_TEXT(typed)) : NULL;
	int rc = r ? 0 : -1;

	if (r)
		buf_puts(out, PQntuples(r) ? PQgetvalue(r, 0, 0) : typed);
	if (r && out->failed)
		rc = call_fail(c, 503, "out of memory");
	PQclear(r);
	call_release(c, db);
	return rc;
}

void read_facts(struct call *c)
{
	const char *fact = call_param(c, "fact"), *value = call_param(c, "value");
	struct buf hosts = {0}, first = {0}, name = {0};

	if (!fact) {
		call_fail(c, 400, "fact: the name of a fact is required");
	} else if (canonical_fact_name(c, fact, &name) == 0 && query_hosts(c, &hosts) == 0) {
		fact = name.data;
		buf_puts(&first, "\"fact\":");
		json_rows_string(&first, fact);
		buf_puts(&first, ",");
		/* PostgreSQL folds letters that the check of the name as typed does not. */
		if (access_admit_fact(c, fact) == 0)
			reply_rows(c, first.failed ? "" : first.data, "facts", facts_columns,
				   value ? facts_value_sql : facts_sql, value ? 3 : 2,
				   (struct db_value[]){ DB_TEXT(fact), DB_TEXT(hosts.data), DB_TEXT(value) });
	}
	buf_free(&hosts);
	buf_free(&first);
	buf_free(&name);
}

void read_drift(struct call *c)
{
	reply_rows(c, "", "drift", drift_columns, drift_sql, 1, &DB_TEXT(call_param(c, "severity")));
}

/* A row whose last column is names, or NULL, as an object whose last member is hosts. */
static int add_group(struct buf *out, const PGresult *r, int row, const struct json_column *columns, struct err *e)
{
	const char *names = PQgetvalue(r, row, PQnfields(r) - 1);
	struct buf hosts = {0};
	int rc;

	buf_puts(out, row ? ",{" : "{");
	json_rows_members(out, r, row, columns);
	rc = *names ? hostlist_fold(names, &hosts, e) : 0;
	buf_puts(out, ",\"hosts\":");
	json_rows_string(out, hosts.data ? hosts.data : "");
	buf_puts(out, "}");
	buf_free(&hosts);
	return rc;
}

/* A few rows with many nodes each. */
static void reply_groups(struct call *c, const char *name, const struct json_column *columns, const char *sql)
{
	struct db *db = call_acquire_reader(c);
	PGresult *r = db ? view_query(c, db, sql, 0, NULL) : NULL;
	struct buf out = {0};
	struct err e;
	int rc = 0;

	buf_printf(&out, "{\"%s\":[", name);
	for (int i = 0; r && rc == 0 && i < PQntuples(r); i++)
		rc = add_group(&out, r, i, columns, &e);
	buf_puts(&out, "]}\n");
	if (r && rc)
		fail_node(c, 503, e.text);
	else if (r)
		call_body(c, JSON, &out);
	buf_free(&out);
	PQclear(r);
	call_release(c, db);
}

void read_shapes(struct call *c)
{
	reply_groups(c, "shapes", shapes_columns, shapes_sql);
}

void read_classes(struct call *c)
{
	reply_groups(c, "classes", classes_columns, classes_sql);
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
	call_release(c, db);
}
