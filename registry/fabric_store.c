/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric_store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/json.h"
#include "rows.h"

#define KEEP_SECONDS "'60s'"	/* 50,000 hosts need a tenth */

/* A GUID that is of a host of the same name already is not told. */
#define NAMES "(SELECT coalesce(json_agg(json_build_object('guid', g.guid, 'node', g.node)), '[]') FROM fabric_guid g JOIN" \
	" (SELECT p.name AS host, coalesce(k.guid, '') AS guid FROM fabric_part p, jsonb_array_elements(p.value->'adapters') a," \
	" LATERAL (VALUES (a.value->>'guid'), (a.value->>'port')) k(guid)" \
	" WHERE p.kind = 'host' AND p.came <= f.version AND (p.went IS NULL OR p.went > f.version)) h" \
	" ON h.guid = g.guid AND h.host <> g.node)"
#define DOCUMENT "SELECT json_build_object('version', f.version, 'since', " RFC3339_US("f.since") ", 'until', " \
	"(SELECT " RFC3339_US("min(n.since)") " FROM fabric n WHERE n.version > f.version), 'text', f.levels," \
	" 'planes', fabric_list(f.version, 'plane'), 'switches', fabric_list(f.version, 'switch')," \
	" 'hosts', fabric_list(f.version, 'host'), 'links', fabric_list(f.version, 'link'), 'names', " NAMES ")" \
	" FROM fabric f WHERE f.version = fabric_version(coalesce($1::timestamptz, 'infinity'))"

static int keep(struct db *db, const char *document, unsigned signer, unsigned *version, bool *changed, struct err *e)
{
	char uid[16];
	PGresult *r;

	snprintf(uid, sizeof(uid), "%u", signer);
	if (db_do(db, e, "SET statement_timeout = " KEEP_SECONDS, 0, NULL))
		return -1;
	r = db_query(db, e, "SELECT version, changed FROM fabric_keep($1::jsonb, $2::bigint)", 2,
		     (struct db_value[]){ DB_TEXT(document), DB_TEXT(uid) });
	db_do(db, NULL, "RESET statement_timeout", 0, NULL);
	if (!r)
		return -1;
	*version = strtoul(PQgetvalue(r, 0, 0), NULL, 10);
	*changed = *PQgetvalue(r, 0, 1) == 't';
	PQclear(r);
	return 0;
}

int fabric_keep(struct db *db, const struct fabric *f, unsigned signer, unsigned *version, bool *changed, struct err *e)
{
	json_t *j = fabric_json_parts(f);
	char *document = j ? json_dumps(j, JSON_COMPACT) : NULL;
	int rc = document ? keep(db, document, signer, version, changed, e) : err_set(e, "out of memory");

	free(document);
	json_decref(j);
	return rc;
}

int fabric_newest(struct db *db, struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT coalesce(max(version), 0) FROM fabric", 0, NULL);
	int version = r ? atoi(PQgetvalue(r, 0, 0)) : -1;

	PQclear(r);
	return version;
}

enum fabric_result fabric_document(struct db *db, const char *when, struct buf *out, struct err *e)
{
	PGresult *r = db_query(db, e, DOCUMENT, 1, &DB_TEXT(when));
	enum fabric_result rc = FABRIC_OK;

	if (!r && when && !strncmp(db_state(db), "22", 2)) {
		err_set(e, "fabric: no time: %.80s", when);
		return FABRIC_BAD;
	}
	if (!r)
		return FABRIC_FAILED;
	if (!PQntuples(r)) {
		err_set(e, "fabric: none was imported%s%.80s", when ? " by " : "", when ? when : "");
		rc = FABRIC_ABSENT;
	} else {
		buf_printf(out, "%s\n", PQgetvalue(r, 0, 0));
	}
	PQclear(r);
	return rc;
}

static struct fabric *parse(const struct buf *document, struct err *e)
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
	struct fabric *f = rc == FABRIC_OK ? parse(&document, e) : NULL;

	buf_free(&document);
	if (rc != FABRIC_OK)
		return rc;
	if (!f)
		return FABRIC_FAILED;
	if (!f->nplanes || !f->planes[0].levels) {
		err_set(e, "fabric: no host of it is on a switch");
		rc = FABRIC_ABSENT;
	} else if (hierarchy_write(f->planes[0].levels, out, e)) {
		rc = FABRIC_FAILED;
	}
	fabric_free(f);
	return rc;
}
