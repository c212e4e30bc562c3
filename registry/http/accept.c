/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ingest/base_insert.h"
#include "store/document.h"
#include "upkeep/upkeep.h"

int accept_admit(struct call *c)
{
	return admin_admit(c, "accept a node");
}

/* The node's present state. */
enum { LAYOUT, BASE, SHAPE, CLASS, EXACT, DRIFTS, SHA256 };
#define NODE_STATE "SELECT n.layout, b.id, f.shape, b.class, n.sha256 = b.sha256, d.node IS NOT NULL," \
	" encode(n.sha256, 'hex')" \
	" FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base LEFT JOIN drift d ON d.node =" \
	" n.name WHERE n.name = $1"

/* NULL when the reply is filled already. */
static PGresult *query_node(struct call *c, struct db *db, const char *sql)
{
	struct err e;
	PGresult *r = db_query(db, &e, sql, 1, &DB_TEXT(c->node));

	if (!r)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	else if (!PQntuples(r))
		call_fail(c, 404, "%s: not in the registry", c->node);
	else if (strcmp(PQgetvalue(r, 0, SHA256), c->claim.sha256))
		call_fail(c, 409, "%s: the node's topology has changed meanwhile; look at it again", c->node);
	else
		return r;
	PQclear(r);
	return NULL;
}

static void accept_reply(struct call *c, struct db *db, const char *class)
{
	struct err e;
	char name[24];
	PGresult *r = db_query(db, &e, "SELECT count(*) FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON"
				       " b.id = f.base WHERE b.class = $1", 1, &DB_TEXT(class));

	snprintf(name, sizeof(name), "c%s", class);
	if (r)
		call_json(c, 200, json_pack("{s:s, s:s, s:I}", "node", c->node, "class", name, "nodes",
					    (json_int_t) strtoll(PQgetvalue(r, 0, 0), NULL, 10)));
	else
		call_fail(c, 503, "%s: %s", c->node, e.text);
	PQclear(r);
}

/* The node is its base byte for byte: the base moves to the new class, with all nodes stored against it. */
static int move_base(struct db *db, const PGresult *r, const char *class, struct err *e)
{
	struct db_value v[] = { DB_TEXT(PQgetvalue(r, 0, BASE)), DB_TEXT(class) };

	return db_execute(db, e, "SELECT 1 FROM base WHERE id = $1 FOR UPDATE", 1, v) ||
	       db_execute(db, e, "UPDATE base SET class = $2, drift = NULL WHERE id = $1", 2, v) ||
	       db_execute(db, e, "UPDATE class SET baseline = $1 WHERE id = $2", 2, v) ? -1 : 0;
}

/* Read before any row is locked. */
struct accepted_document {
	struct buf xml;		/* empty when the node is its base */
	struct parsed parsed;
};

static int create_base(struct db *db, const char *node, const PGresult *r, const char *class,
		       const struct accepted_document *d, struct err *e)
{
	struct base_insertion n = { .class = class, .shape = PQgetvalue(r, 0, SHAPE), .node = node, .xml = &d->xml,
			      .parsed = &d->parsed };
	char base[DB_KEY];
	struct layout_key layout;
	struct db_value to_layout[] = { DB_TEXT(node), DB_TEXT(layout.id) };
	int rc = base_insert(db, &n, base, &layout, e);

	if (rc)
		return rc < 0 ? -1 : err_set(e, "another node with the same document was stored as a base meanwhile;"
						" retry");
	return db_execute(db, e, "UPDATE class SET baseline = $1 WHERE id = $2", 2,
			  (struct db_value[]){ DB_TEXT(base), DB_TEXT(class) }) ||
	       db_execute(db, e, "UPDATE node SET layout = $2, diff = '' WHERE name = $1", 2, to_layout) ||
	       db_execute(db, e, "DELETE FROM node_fact WHERE node = $1", 1, to_layout) ? -1 : 0;
}

static bool is_base(const PGresult *r)
{
	return *PQgetvalue(r, 0, EXACT) == 't';
}

/* The node's row is locked and read again: an export may have been committed meanwhile. */
static int run_transaction(struct call *c, struct db *db, const struct accepted_document *d,
			   char class[static DB_KEY], struct err *e)
{
	PGresult *r = NULL;
	int rc = -1;

	if (db_execute(db, e, "BEGIN", 0, NULL))
		goto done;
	if (!(r = query_node(c, db, NODE_STATE " FOR UPDATE OF n"))) {
		rc = 1;
		goto done;
	}
	if (is_base(r) == (d->xml.data != NULL) || *PQgetvalue(r, 0, DRIFTS) != 't') {
		err_set(e, "the node was stored differently meanwhile; retry");
		goto done;
	}
	if (db_query_key(db, class, e, "INSERT INTO class (accepted_from) VALUES ($1) RETURNING id", 1,
			 &DB_TEXT(PQgetvalue(r, 0, CLASS))) != 1 ||
	    (is_base(r) ? move_base(db, r, class, e) : create_base(db, c->node, r, class, d, e)) ||
	    db_execute(db, e, "DELETE FROM drift WHERE node = $1", 1, &DB_TEXT(c->node)) ||
		    db_execute(db, e, "COMMIT", 0, NULL))
		goto done;
	rc = 0;
done:
	PQclear(r);
	if (rc)
		db_execute(db, NULL, "ROLLBACK", 0, NULL);
	return rc;
}

static int read_document(struct call *c, struct db *db, struct accepted_document *out, struct err *e)
{
	struct accepted_document d = {0};

	if (document_load(c->service->bases, db, c->node, NULL, &d.xml, NULL, e) != DOCUMENT_OK)
		return -1;
	if (parser_read(c->service->parser, c->node, &d.xml, &d.parsed, e) != PARSER_OK) {
		buf_free(&d.xml);
		return -1;
	}
	*out = d;
	return 0;
}

static int base_refresh(struct call *c, struct db *db, const PGresult *r, struct err *e)
{
	struct bases *b = c->service->bases;

	return is_base(r) ? bases_invalidate(b, db, atoi(PQgetvalue(r, 0, BASE)), e) : bases_refresh(b, db, e);
}

static void accept_drifted(struct call *c, struct db *db, const PGresult *r)
{
	struct accepted_document d = {0};
	char class[DB_KEY];
	struct err e;
	int rc = is_base(r) ? 0 : read_document(c, db, &d, &e);

	if (rc == 0)
		rc = run_transaction(c, db, &d, class, &e);
	if (rc == 0)
		rc = base_refresh(c, db, r, &e);
	if (rc < 0)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	if (rc == 0) {
		log_info("%s: accepted by uid %u as class c%s", c->node, (unsigned) c->signer, class);
		upkeep_notify_accept(c->service->upkeep);
		accept_reply(c, db, class);
	}
	buf_free(&d.xml);
	parsed_free(&d.parsed);
}

void accept_node(struct call *c)
{
	struct db *db = call_acquire_writer(c);
	PGresult *r = db ? query_node(c, db, NODE_STATE) : NULL;

	if (r && *PQgetvalue(r, 0, DRIFTS) == 't')
		accept_drifted(c, db, r);
	else if (r)
		accept_reply(c, db, PQgetvalue(r, 0, CLASS));
	PQclear(r);
	db_release(c->service->pool, db);
}
