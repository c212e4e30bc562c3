/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "accept.h"

#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "base/log.h"
#include "new_base.h"
#include "store.h"
#include "upkeep.h"

int accept_admit(struct call *c)
{
	return admin_admit(c, "accept a node");
}

/* The node as it stands. */
enum { FORM, BASE, SHAPE, CLASS, EXACT, DRIFTS, SHA256 };
#define STANDING "SELECT n.form, b.id, f.shape, b.class, n.sha256 = b.sha256, d.node IS NOT NULL, encode(n.sha256, 'hex')" \
	" FROM node n JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base LEFT JOIN drift d ON d.node = n.name WHERE n.name = $1"

/* NULL when there is nothing to do but to reply, which is done. */
static PGresult *standing(struct call *c, struct db *db, const char *sql)
{
	struct err e;
	PGresult *r = db_query(db, &e, sql, 1, &DB_TEXT(c->node));

	if (!r)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	else if (!PQntuples(r))
		call_fail(c, 404, "%s: not in the registry", c->node);
	else if (strcmp(PQgetvalue(r, 0, SHA256), c->claim.sha256))
		call_fail(c, 409, "%s: has changed since", c->node);
	else
		return r;
	PQclear(r);
	return NULL;
}

static void reply(struct call *c, struct db *db, const char *class)
{
	struct err e;
	char name[24];
	PGresult *r = db_query(db, &e, "SELECT count(*) FROM node n JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base"
			       " WHERE b.class = $1", 1, &DB_TEXT(class));

	snprintf(name, sizeof(name), "c%s", class);
	if (r)
		call_json(c, 200, json_pack("{s:s, s:s, s:I}", "node", c->node, "class", name, "nodes",
					    (json_int_t) strtoll(PQgetvalue(r, 0, 0), NULL, 10)));
	else
		call_fail(c, 503, "%s: %s", c->node, e.text);
	PQclear(r);
}

static int new_class(struct db *db, const char *from, char class[static 16], struct err *e)
{
	PGresult *r = db_query(db, e, "INSERT INTO class (accepted_from) VALUES ($1) RETURNING id", 1, &DB_TEXT(from));

	if (r)
		snprintf(class, 16, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return r ? 0 : -1;
}

/* The node is its base to the byte: that one goes to the new class, with all that stand on it. */
static int move_base(struct db *db, const PGresult *r, const char *class, struct err *e)
{
	struct db_value v[] = { DB_TEXT(PQgetvalue(r, 0, BASE)), DB_TEXT(class) };

	return db_do(db, e, "SELECT 1 FROM base WHERE id = $1 FOR UPDATE", 1, v) ||
	       db_do(db, e, "UPDATE base SET class = $2, drift = NULL WHERE id = $1", 2, v) ||
	       db_do(db, e, "UPDATE class SET golden = $1 WHERE id = $2", 2, v) ? -1 : 0;
}

/* What is read before any row is held. */
struct document {
	struct buf xml;		/* empty when the node is its base */
	struct parsed parsed;
};

static int make_base(struct db *db, const char *node, const PGresult *r, const char *class, const struct document *d, struct err *e)
{
	struct new_base n = { .class = class, .shape = PQgetvalue(r, 0, SHAPE), .node = node, .xml = &d->xml, .parsed = &d->parsed };
	char base[DB_KEY], form[DB_KEY];
	struct db_value to_form[] = { DB_TEXT(node), DB_TEXT(form) };
	int rc = base_insert(db, &n, base, form, e);

	if (rc)
		return rc < 0 ? -1 : err_set(e, "another node was made a base with the same document; ask again");
	return db_do(db, e, "UPDATE class SET golden = $1 WHERE id = $2", 2, (struct db_value[]){ DB_TEXT(base), DB_TEXT(class) }) ||
	       db_do(db, e, "UPDATE node SET form = $2, diff = '' WHERE name = $1", 2, to_form) ||
	       db_do(db, e, "DELETE FROM node_fact WHERE node = $1", 1, to_form) ? -1 : 0;
}

static bool exact(const PGresult *r)
{
	return *PQgetvalue(r, 0, EXACT) == 't';
}

/* The node's row is held from here on, and looked at again: an export may have come between. */
static int transact(struct call *c, struct db *db, const struct document *d, char class[static 16], struct err *e)
{
	PGresult *r = NULL;
	int rc = -1;

	if (db_do(db, e, "BEGIN", 0, NULL))
		goto done;
	if (!(r = standing(c, db, STANDING " FOR UPDATE OF n"))) {
		rc = 1;
		goto done;
	}
	if (exact(r) == (d->xml.data != NULL) || *PQgetvalue(r, 0, DRIFTS) != 't') {
		err_set(e, "it was moved meanwhile; ask again");
		goto done;
	}
	if (new_class(db, PQgetvalue(r, 0, CLASS), class, e) ||
	    (exact(r) ? move_base(db, r, class, e) : make_base(db, c->node, r, class, d, e)) ||
	    db_do(db, e, "DELETE FROM drift WHERE node = $1", 1, &DB_TEXT(c->node)) || db_do(db, e, "COMMIT", 0, NULL))
		goto done;
	rc = 0;
done:
	PQclear(r);
	if (rc)
		db_do(db, NULL, "ROLLBACK", 0, NULL);
	return rc;
}

static int read_document(struct call *c, struct db *db, struct document *out, struct err *e)
{
	struct document d = {0};

	if (store_xml(c->service->bases, db, c->node, NULL, &d.xml, NULL, e) != STORE_OK)
		return -1;
	if (parser_read(c->service->parser, c->node, &d.xml, &d.parsed, e) != PARSER_OK) {
		buf_free(&d.xml);
		return -1;
	}
	*out = d;
	return 0;
}

static int look_again(struct call *c, struct db *db, const PGresult *r, struct err *e)
{
	struct bases *b = c->service->bases;

	return exact(r) ? bases_show_again(b, db, atoi(PQgetvalue(r, 0, BASE)), e) : bases_refresh(b, db, e);
}

static void accept_drifted(struct call *c, struct db *db, const PGresult *r)
{
	struct document d = {0};
	char class[16];
	struct err e;
	int rc = exact(r) ? 0 : read_document(c, db, &d, &e);

	if (rc == 0)
		rc = transact(c, db, &d, class, &e);
	if (rc == 0)
		rc = look_again(c, db, r, &e);
	if (rc < 0)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	if (rc == 0) {
		log_info("%s: accepted by uid %u as class c%s", c->node, (unsigned) c->signer, class);
		upkeep_follow(c->service->upkeep);
		reply(c, db, class);
	}
	buf_free(&d.xml);
	parsed_free(&d.parsed);
}

void accept_node(struct call *c)
{
	struct db *db = call_db(c);
	PGresult *r = db ? standing(c, db, STANDING) : NULL;

	if (r && *PQgetvalue(r, 0, DRIFTS) == 't')
		accept_drifted(c, db, r);
	else if (r)
		reply(c, db, PQgetvalue(r, 0, CLASS));
	PQclear(r);
	db_give(c->service->pool, db);
}
