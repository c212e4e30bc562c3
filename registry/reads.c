/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "reads.h"

#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define RFC3339(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"

/* A column of a result and what it is in JSON. */
struct field {
	const char *name;
	bool number;
};

static const struct field node_fields[] = {
	{ "node", false }, { "shape", false }, { "stored", false }, { "base", false }, { "stored_bytes", true }, { "xml_bytes", true },
	{ "last_boot", false }, { "cores", true }, { "pus", true }, { "sha256", false }, {0},
};
#define NODES "SELECT node, shape, stored, base, stored_bytes, xml_bytes, " \
	RFC3339("last_boot") ", cores, pus, sha256 FROM topiary_nodes"

static const struct field boot_fields[] = {
	{ "boot_id", false }, { "seq", true }, { "sha256", false }, { "received", false }, {0},
};
#define BOOTS "SELECT b.boot_id, b.seq, e.sha256, " RFC3339("b.received") " FROM boot b JOIN export e ON e.id = b.export" \
	" WHERE b.node = $1 ORDER BY b.id DESC LIMIT 50"

static const struct field shape_fields[] = {
	{ "shape", false }, { "synthetic", false }, { "nodes", true }, { "cores", true }, { "pus", true }, { "hosts", false }, {0},
};
#define SHAPES "SELECT shape, synthetic, count(*), cores, pus, string_agg(node, ',' ORDER BY node) FROM topiary_nodes" \
	" GROUP BY shape, synthetic, cores, pus ORDER BY shape"

static json_t *value(const PGresult *r, int row, int column, bool number)
{
	const char *text = PQgetvalue(r, row, column);

	if (PQgetisnull(r, row, column))
		return json_null();
	return number ? json_integer(atoll(text)) : json_string(text);
}

static json_t *row_json(const PGresult *r, int row, const struct field *fields)
{
	json_t *o = json_object();

	for (int i = 0; fields[i].name; i++)
		json_object_set_new(o, fields[i].name, value(r, row, i, fields[i].number));
	return o;
}

static json_t *rows_json(const PGresult *r, const struct field *fields)
{
	json_t *list = json_array();

	for (int i = 0; i < PQntuples(r); i++)
		json_array_append_new(list, row_json(r, i, fields));
	return list;
}

/* Run a query; NULL, and the reply says why. */
static PGresult *ask(struct call *c, struct db *db, const char *sql, unsigned n)
{
	struct err e;
	PGresult *r = db_query(db, &e, sql, n, &DB_TEXT(c->node));

	if (!r)
		call_fail(c, 503, "%s", e.text);
	return r;
}

void read_nodes(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *r = db ? ask(c, db, NODES " ORDER BY node", 0) : NULL;

	if (r)
		call_json(c, 200, json_pack("{s:o}", "nodes", rows_json(r, node_fields)));
	PQclear(r);
	db_give(c->service->pool, db);
}

static void node_answer(struct call *c, const PGresult *node, const PGresult *boots)
{
	json_t *o;

	if (!PQntuples(node)) {
		call_fail(c, 404, "%s: not in the registry", c->node);
		return;
	}
	o = row_json(node, 0, node_fields);
	json_object_set_new(o, "boots", rows_json(boots, boot_fields));
	call_json(c, 200, o);
}

void read_node(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *node = db ? ask(c, db, NODES " WHERE node = $1", 1) : NULL;
	PGresult *boots = node ? ask(c, db, BOOTS, 1) : NULL;

	if (boots)
		node_answer(c, node, boots);
	PQclear(node);
	PQclear(boots);
	db_give(c->service->pool, db);
}

static void document(struct call *c, const char *type, int rc, const struct buf *text, const struct err *e)
{
	if (rc) {
		call_fail(c, 503, "%s%s%s", c->node, *c->node ? ": " : "", e->text);
		return;
	}
	c->reply.status = 200;
	c->reply.type = type;
	c->reply.body = *text;
}

void read_topology(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *r = db ? ask(c, db, "SELECT current FROM node WHERE name = $1", 1) : NULL;
	struct buf xml = {0};
	struct err e;

	if (r && !PQntuples(r))
		call_fail(c, 404, "%s: not in the registry", c->node);
	else if (r)
		document(c, "application/xml", store_xml(db, PQgetvalue(r, 0, 0), &xml, &e), &xml, &e);
	PQclear(r);
	db_give(c->service->pool, db);
}

static json_t *fold(const char *names)
{
	hostlist_t hosts = slurm_hostlist_create(names);
	char *text;
	json_t *folded;

	if (!hosts)
		return json_null();
	slurm_hostlist_uniq(hosts);
	text = slurm_hostlist_ranged_string_malloc(hosts);
	folded = text ? json_string(text) : json_null();
	free(text);
	slurm_hostlist_destroy(hosts);
	return folded;
}

void read_shapes(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *r = db ? ask(c, db, SHAPES, 0) : NULL;
	json_t *list, *shape;
	size_t i;

	if (r) {
		list = rows_json(r, shape_fields);
		json_array_foreach(list, i, shape)
			json_object_set_new(shape, "hosts", fold(json_string_value(json_object_get(shape, "hosts"))));
		call_json(c, 200, json_pack("{s:o}", "shapes", list));
	}
	PQclear(r);
	db_give(c->service->pool, db);
}

void read_snapshot(struct call *c)
{
	struct db *db = call_db(c);
	struct buf text = {0};
	struct err e;

	if (db)
		document(c, "text/plain; charset=utf-8", publish_text(db, &text, &e), &text, &e);
	db_give(c->service->pool, db);
}

void read_health(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *r = db ? ask(c, db, "SELECT count(*) FROM node", 0) : NULL;

	if (r)
		call_json(c, 200, json_pack("{s:s, s:s, s:I}", "status", "ok", "version", TOPIARY_VERSION,
					    "nodes", (json_int_t) atoll(PQgetvalue(r, 0, 0))));
	PQclear(r);
	db_give(c->service->pool, db);
}
