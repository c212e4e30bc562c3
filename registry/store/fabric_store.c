/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric_store.h"

#include <jansson.h>

#include "fabric/read/json.h"
#include "json_rows.h"

/*
 * Notes
 *
 * No data. The caller has the connection for itself: a worker, or the publisher. Versions are numbered under a lock of
 * PostgreSQL (fabric_keep).
 */
#define SAVE_SECONDS 60	/* 50,000 hosts need a tenth */

/* The GUIDs of adapters that are not of a host with their node's name. */
#define NAMES "(SELECT coalesce(json_agg(json_build_object('guid', k.guid, 'node', a.node)), '[]') FROM" \
	" topiary_fabric_adapters a," \
	" LATERAL (VALUES (a.guid), (a.port)) k(guid)" \
	" WHERE k.guid IS NOT NULL AND a.node <> a.host AND a.since <= f.since AND (a.until IS NULL OR a.until >" \
	" f.since))"
#define DOCUMENT "SELECT json_build_object('version', f.version, 'since', " RFC3339_US("f.since") ", 'until', " \
	"(SELECT " RFC3339_US("min(n.since)") " FROM fabric n WHERE n.version > f.version), 'text', f.levels," \
	" 'planes', fabric_list(f.version, 'plane'), 'switches', fabric_list(f.version, 'switch')," \
	" 'hosts', fabric_list(f.version, 'host'), 'links', fabric_list(f.version, 'link'), 'names', " NAMES ")" \
	" FROM fabric f WHERE f.version = fabric_version(coalesce($1::timestamptz, 'infinity'))"

static int save_document(struct db *db, const char *document, unsigned signer, unsigned *version, bool *changed,
			 struct err *e)
{
	PGresult *r;

	if (db_limit(db, SAVE_SECONDS, e))
		return -1;
	r = db_query(db, e, "SELECT version, changed FROM fabric_keep($1::jsonb, $2::bigint)", 2,
		     (struct db_value[]){ DB_TEXT(document), DB_NUMBER(signer) });
	if (!r)
		return -1;
	*version = strtoul(PQgetvalue(r, 0, 0), NULL, 10);
	*changed = *PQgetvalue(r, 0, 1) == 't';
	PQclear(r);
	return 0;
}

int fabric_save(struct db *db, const struct fabric *f, unsigned signer, unsigned *version, bool *changed, struct err *e)
{
	json_t *j = fabric_json_parts(f);
	char *document = j ? json_dumps(j, JSON_COMPACT) : NULL;
	int rc = document ? save_document(db, document, signer, version, changed, e) : err_set(e, "out of memory");

	free(document);
	json_decref(j);
	return rc;
}

/* Nothing while no node has another topology than at the last time, or no fabric was imported. */
#define MATCH "SELECT fabric_match() FROM registry r" \
	" WHERE EXISTS (SELECT FROM fabric) AND EXISTS (SELECT FROM node n WHERE n.since > r.matched)"

int fabric_match(struct db *db, struct err *e)
{
	return db_limit(db, SAVE_SECONDS, e) || db_execute(db, e, MATCH, 0, NULL) ||
		db_limit(db, DB_SECONDS, e) ? -1 : 0;
}

int fabric_latest(struct db *db, char name[static FABRIC_VERSION_NAME], struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT version || ' ' || since FROM fabric ORDER BY version DESC LIMIT 1", 0,
			       NULL);

	if (r)
		snprintf(name, FABRIC_VERSION_NAME, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
	PQclear(r);
	return r ? 0 : -1;
}

enum fabric_result fabric_document(struct db *db, const char *when, struct buf *out, struct err *e)
{
	PGresult *r = db_query(db, e, DOCUMENT, 1, &DB_TEXT(when));
	enum fabric_result rc = FABRIC_OK;

	if (!r && when && !strncmp(db_state(db), "22", 2)) {
		err_set(e, "fabric: invalid time: %.80s", when);
		return FABRIC_BAD;
	}
	if (!r)
		return FABRIC_FAILED;
	if (!PQntuples(r)) {
		err_set(e, "fabric: no fabric was imported%s", when ? " by that time" : "");
		rc = FABRIC_ABSENT;
	} else {
		buf_printf(out, "%s\n", PQgetvalue(r, 0, 0));
	}
	PQclear(r);
	return rc;
}

static struct fabric *parse_document(const struct buf *document, struct err *e)
{
	json_error_t why;
	json_t *j = document->failed ? NULL : json_loadb(document->data, document->len, 0, &why);
	struct fabric *f = NULL;

	if (j)
		f = fabric_of_json(j, "fabric", e);
	else
		err_set(e, "fabric: %s", document->failed ? "out of memory" : why.text);
	json_decref(j);
	return f;
}

enum fabric_result fabric_levels(struct db *db, struct buf *out, struct err *e)
{
	struct buf document = {0};
	enum fabric_result rc = fabric_document(db, NULL, &document, e);
	struct fabric *f = rc == FABRIC_OK ? parse_document(&document, e) : NULL;

	buf_free(&document);
	if (rc != FABRIC_OK)
		return rc;
	if (!f)
		return FABRIC_FAILED;
	if (!f->nplanes || !f->planes[0].levels) {
		err_set(e, "fabric: no host is connected to a switch");
		rc = FABRIC_ABSENT;
	} else if (hierarchy_write(f->planes[0].levels, out, e)) {
		rc = FABRIC_FAILED;
	}
	fabric_free(f);
	return rc;
}
