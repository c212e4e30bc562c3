/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FORM, DIFF, SHA256, XML_BYTES };
#define COLUMNS "form, diff, encode(sha256, 'hex'), xml_bytes"
#define NOW "SELECT " COLUMNS " FROM node WHERE name = $1"
#define THEN "SELECT " COLUMNS " FROM (SELECT since, form, diff, sha256, xml_bytes FROM node WHERE name = $1 UNION ALL" \
	" SELECT since, form, diff, sha256, xml_bytes FROM past WHERE node = $1) every WHERE since <= $2::timestamptz" \
	" ORDER BY since DESC LIMIT 1"

static int decode(struct bases *b, struct db *db, const PGresult *r, struct buf *out, struct err *e)
{
	size_t length = strtoul(PQgetvalue(r, 0, XML_BYTES), NULL, 10);
	struct buf diff = {0}, xml = {0};
	struct opened o = {0};
	char sha256[HASH_HEX];
	int rc = -1;

	if (db_bytes(r, 0, DIFF, &diff)) {
		err_set(e, "out of memory");
		goto done;
	}
	if (bases_open(b, db, PQgetvalue(r, 0, FORM), &o, e) || opened_decode(&o, diff.data, diff.len, length, &xml, e))
		goto done;
	hash_hex(xml.data, xml.len, sha256);
	if (strcmp(sha256, PQgetvalue(r, 0, SHA256))) {
		err_set(e, "what was stored does not give the document back");
		goto done;
	}
	*out = xml;
	xml = (struct buf){0};
	rc = 0;
done:
	opened_close(b, &o);
	buf_free(&diff);
	buf_free(&xml);
	return rc;
}

enum store_result store_xml(struct bases *b, struct db *db, const char *node, const char *when, struct buf *out, char sha256[HASH_HEX],
			    struct err *e)
{
	PGresult *r = db_often(db, e, when ? THEN : NOW, when ? 2 : 1, (struct db_value[]){ DB_TEXT(node), DB_TEXT(when) });
	enum store_result rc = STORE_OK;

	if (!r) {
		if (strncmp(db_state(db), "22", 2))
			return STORE_FAILED;
		err_set(e, "%s: no time: %.80s", node, when);
		return STORE_BAD;
	}
	if (!PQntuples(r)) {
		err_set(e, "%s: %s%.80s", node, when ? "nothing is known of it at " : "not in the registry", when ? when : "");
		rc = STORE_ABSENT;
	} else if (decode(b, db, r, out, e)) {
		err_within(e, "%s", node);
		rc = STORE_FAILED;
	} else if (sha256) {
		memcpy(sha256, PQgetvalue(r, 0, SHA256), HASH_HEX);
	}
	PQclear(r);
	return rc;
}
