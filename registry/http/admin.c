/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include "base/log.h"
#include "ingest/gate.h"
#include "store/document.h"
#include "upkeep/fsck.h"
#include "upkeep/upkeep.h"

/*
 * Notes
 *
 * No data. Called in a worker. A transaction locks the node's row first, then the base's; whatever is parsed or rebuilt
 * is so before any row is locked.
 */

/* The node's present state. */
enum { LAYOUT, BASE, SHAPE, CLASS, EXACT, DRIFTS, SHA256 };	/* admin_query_node */
#define NODE_STATE "SELECT n.layout, b.id, f.shape, b.class, n.sha256 = b.sha256, d.node IS NOT NULL," \
	" encode(n.sha256, 'hex')" \
	" FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base LEFT JOIN drift d ON d.node =" \
	" n.name WHERE n.name = $1"

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

/* The node is this base byte for byte: the base moves to the new class, with all nodes stored against it. */
static int move_base(struct db *db, const char *base, const char *class, struct err *e)
{
	struct db_value v[] = { DB_TEXT(base), DB_TEXT(class) };

	return db_execute(db, e, "SELECT 1 FROM base WHERE id = $1 FOR UPDATE", 1, v) ||
	       db_execute(db, e, "UPDATE base SET class = $2, drift = NULL WHERE id = $1", 2, v) ||
	       db_execute(db, e, "UPDATE class SET baseline = $1 WHERE id = $2", 2, v) ? -1 : 0;
}

/* Read before any row is locked. */
struct accepted_document {
	struct buf xml;		/* empty when the node is its base */
	struct parsed parsed;
};

static int node_to_layout(struct db *db, const char *node, const char *layout, struct err *e)
{
	struct db_value v[] = { DB_TEXT(node), DB_TEXT(layout) };

	return db_execute(db, e, "UPDATE node SET layout = $2, diff = '' WHERE name = $1", 2, v) ||
	       db_execute(db, e, "DELETE FROM node_fact WHERE node = $1", 1, v) ? -1 : 0;
}

/* A base with the node's document exists, as that of a repaired node does. */
#define SAME_BASE "SELECT b.id, b.class, c.baseline = b.id FROM base b JOIN class c ON c.id = b.class" \
	" WHERE b.sha256 = decode($1, 'hex') FOR UPDATE OF b"

#define BASE_LAYOUT "WITH found AS (SELECT id FROM layout WHERE base = $1::int AND kind = 'base' ORDER BY id" \
	" LIMIT 1), made AS (INSERT INTO layout (base, kind, shape) SELECT $1::int, 'base', $2 WHERE NOT EXISTS" \
	" (SELECT FROM found) RETURNING id) SELECT id FROM found UNION ALL SELECT id FROM made"

/* The node becomes that base, in its class if it is the baseline there: then the new class is not needed. */
static int join_base(struct db *db, const char *node, const PGresult *r, char class[static DB_KEY],
		     int *moved, struct err *e)
{
	PGresult *same = db_query(db, e, SAME_BASE, 1, &DB_TEXT(PQgetvalue(r, 0, SHA256)));
	const char *base = same && PQntuples(same) ? PQgetvalue(same, 0, 0) : NULL;
	char layout[DB_KEY];
	int rc = -1;

	if (!base) {
		if (same)
			err_set(e, "the base of this document was removed meanwhile; retry");
	} else if (db_query_key(db, layout, e, BASE_LAYOUT, 2,
				(struct db_value[]){ DB_TEXT(base), DB_TEXT(PQgetvalue(r, 0, SHAPE)) }) == 1 &&
		   !node_to_layout(db, node, layout, e)) {
		if (*PQgetvalue(same, 0, 2) != 't') {
			*moved = atoi(base);
			rc = move_base(db, base, class, e);
		} else if (!(rc = db_execute(db, e, "DELETE FROM class WHERE id = $1", 1, &DB_TEXT(class)))) {
			snprintf(class, DB_KEY, "%s", PQgetvalue(same, 0, 1));
		}
	}
	PQclear(same);
	return rc;
}

static int create_base(struct db *db, const char *node, const PGresult *r, char class[static DB_KEY],
		       const struct accepted_document *d, int *moved, struct err *e)
{
	struct base_insertion n = { .class = class, .shape = PQgetvalue(r, 0, SHAPE), .node = node, .xml = &d->xml,
				    .detail = d->parsed.detail, .facts = d->parsed.facts };
	char base[DB_KEY];
	struct layout_key layout;
	int rc = base_rows_insert(db, &n, base, &layout, e);

	if (rc)
		return rc < 0 ? -1 : join_base(db, node, r, class, moved, e);
	return db_execute(db, e, "UPDATE class SET baseline = $1 WHERE id = $2", 2,
			  (struct db_value[]){ DB_TEXT(base), DB_TEXT(class) }) ||
	       node_to_layout(db, node, layout.id, e) ? -1 : 0;
}

static bool is_base(const PGresult *r)
{
	return *PQgetvalue(r, 0, EXACT) == 't';
}

/*
 * The node's row is locked and read again: an export may have been committed meanwhile. moved: the base that is in
 * another class now, unchanged if none. 0, 1 with the reply filled, -1.
 */
static int run_transaction(struct call *c, struct db *db, const struct accepted_document *d,
			   char class[static DB_KEY], int *moved, struct err *e)
{
	PGresult *r = NULL;
	int rc = db_execute(db, e, "BEGIN", 0, NULL);

	if (rc == 0 && !(r = admin_query_node(c, db, NODE_STATE " FOR UPDATE OF n")))
		rc = 1;
	else if (rc == 0 && (is_base(r) == (d->xml.data != NULL) || *PQgetvalue(r, 0, DRIFTS) != 't'))
		rc = err_set(e, "the node was stored differently meanwhile; retry");
	else if (rc == 0 && (db_query_key(db, class, e, "INSERT INTO class (accepted_from) VALUES ($1) RETURNING id", 1,
					  &DB_TEXT(PQgetvalue(r, 0, CLASS))) != 1 ||
			     (is_base(r) ? move_base(db, PQgetvalue(r, 0, BASE), class, e) :
					   create_base(db, c->node, r, class, d, moved, e)) ||
			     db_execute(db, e, "DELETE FROM drift WHERE node = $1", 1, &DB_TEXT(c->node))))
		rc = -1;
	PQclear(r);
	return db_end(db, rc, e);
}

static void accept_drifted(struct call *c, struct db *db, const PGresult *r)
{
	struct accepted_document d = {0};
	struct bases *b = c->service->bases;
	int moved = is_base(r) ? atoi(PQgetvalue(r, 0, BASE)) : 0, rc = 0;
	char class[DB_KEY];
	struct err e;

	if (!is_base(r) && (document_load(b, db, c->node, NULL, &d.xml, NULL, &e) != DOCUMENT_OK ||
			    parser_read(c->service->parser, c->node, &d.xml, &d.parsed, NULL, &e) != PARSER_OK))
		rc = -1;
	if (rc == 0)
		rc = run_transaction(c, db, &d, class, &moved, &e);
	if (rc == 0)
		rc = moved ? bases_invalidate(b, db, moved, &e) : bases_refresh(b, db, &e);
	if (rc < 0)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	if (rc == 0) {
		log_info("%s: accepted by uid %u as class c%s", c->node, (unsigned) c->signer, class);
		upkeep_notify(c->service->upkeep, UPKEEP_ON_ACCEPT);
		accept_reply(c, db, class);
	}
	buf_free(&d.xml);
	parsed_free(&d.parsed);
}

void accept_node(struct call *c)
{
	struct db *db = call_acquire_writer(c);
	PGresult *r = db ? admin_query_node(c, db, NODE_STATE) : NULL;

	if (r && *PQgetvalue(r, 0, DRIFTS) == 't')
		accept_drifted(c, db, r);
	else if (r)
		accept_reply(c, db, PQgetvalue(r, 0, CLASS));
	PQclear(r);
	db_release(db);
}

/* --- forget --- */

#define HOLD "SELECT encode(sha256, 'hex') FROM node WHERE name = $1 FOR UPDATE"
/* Drift, facts and measurements refer to the node's row and are deleted with it. */
#define FORGET "WITH gone AS (DELETE FROM node WHERE name = $1)," \
	" damaged AS (DELETE FROM unreadable WHERE node = $1)," \
	" counted AS (UPDATE registry SET removed = removed + 1)," \
	" adapters AS (UPDATE fabric_adapter SET node = NULL, device = NULL WHERE node = $1)," \
	" old AS (DELETE FROM past WHERE node = $1 RETURNING 1) SELECT count(*) FROM old"
/* If another node has the same GUID, the adapter is now that node's: upkeep matches what is newer than its last run. */
#define REMATCH "UPDATE registry SET matched = least(matched, (SELECT max(since) FROM node) - interval '1 second')" \
	" WHERE EXISTS (SELECT FROM fabric)"

void forget_node(struct call *c)
{
	struct db *db = call_acquire_writer(c);
	PGresult *held = NULL;
	char past[DB_KEY];
	struct err e;

	if (!db)
		return;
	/* What is not committed is rolled back with db_release. */
	if (db_execute(db, &e, "BEGIN", 0, NULL)) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	} else if (!(held = admin_query_node(c, db, HOLD))) {
		/* the reply is filled */
	} else if (db_query_key(db, past, &e, FORGET, 1, &DB_TEXT(c->node)) != 1 ||
		   db_execute(db, &e, REMATCH, 0, NULL) || db_execute(db, &e, "COMMIT", 0, NULL)) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	} else {
		log_info("%s: removed by uid %u, with %s former exports", c->node, (unsigned) c->signer, past);
		publisher_request(c->service->publisher);
		upkeep_notify(c->service->upkeep, UPKEEP_ON_COSTS);
		call_json(c, 200, json_pack("{s:s, s:I}", "node", c->node, "history",
					    (json_int_t) strtoll(past, NULL, 10)));
	}
	PQclear(held);
	db_release(db);
}

/* --- check of stored documents --- */

void fsck_post(struct call *c)
{
	const char *after = call_param(c, "after") ? call_param(c, "after") : "";
	struct gate_slot slot = { .node = c->node };
	struct fsck f = { .bases = c->service->bases, .parser = c->service->parser,
			  .record = !strcmp(c->node, FSCK_REPAIR_CLAIM) };
	char stored[DB_KEY];	/* for progress displays */
	char sha256[HASH_HEX];
	struct err e;

	hash_hex(after, strlen(after), sha256);
	if (strcmp(sha256, c->claim.sha256)) {
		call_fail(c, 403, "%s: the credential was signed for other documents", c->node);
		return;
	}
	if (gate_enter(c->service->gate, &slot) != GATE_ENTERED) {
		call_fail(c, 503, "%s: too many documents are being processed; try again later", c->node);
		return;
	}
	if ((f.db = call_acquire_writer(c))) {
		if (db_query_key(f.db, stored, &e, "SELECT (SELECT count(*) FROM node) + (SELECT count(*) FROM past)",
				 0, NULL) != 1 || fsck_some(&f, after, &e))
			call_fail(c, strncmp(db_state(f.db), "22", 2) ? 503 : 400, "%s: %s", c->node, e.text);
		else
			call_json(c, 200, json_pack("{s:I, s:I, s:o, s:s?}",
						    "documents", (json_int_t) strtoll(stored, NULL, 10),
						    "checked", (json_int_t) f.checked,
						    "unreadable", f.unreadable, "next", *f.next ? f.next : NULL));
		db_release(f.db);
	}
	gate_leave(c->service->gate, &slot);
}
