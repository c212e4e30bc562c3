/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base_insert.h"

#include <stdio.h>

#include "base/hash.h"
#include "store/facts.h"
#include "delta/pack.h"

int base_restore(struct db *db, const struct buf *xml, struct err *e)
{
	char sha256[HASH_HEX], base[DB_KEY];
	struct pack alone;
	int rc;

	if (pack_make(NULL, 0, xml->data, xml->len, &alone, e))
		return -1;
	hash_hex(xml->data, xml->len, sha256);
	rc = db_query_key(db, base, e, "UPDATE base SET bytes = $2::bytea WHERE sha256 = decode($1, 'hex') AND bytes"
				       " <> $2::bytea"
		    " RETURNING id", 2, (struct db_value[]){ DB_TEXT(sha256),
							     DB_BYTES(alone.bytes.data, alone.bytes.len) });
	buf_free(&alone.bytes);
	return rc;
}

int base_insert(struct db *db, const struct base_insertion *n, char base[static DB_KEY], struct layout_key *layout,
		struct err *e)
{
	char sha256[HASH_HEX], length[24];
	struct pack alone;
	int rc;

	if (pack_make(NULL, 0, n->xml->data, n->xml->len, &alone, e))
		return -1;
	hash_hex(n->xml->data, n->xml->len, sha256);
	snprintf(length, sizeof(length), "%zu", n->xml->len);
	rc = db_query_key(db, base, e, "INSERT INTO base (class, shape, sha256, bytes, xml_bytes, detail, drift, node)"
		       " VALUES ($1, $2, decode($3, 'hex'), $4, $5, $6, $7, $8) ON CONFLICT (sha256) DO NOTHING"
		       " RETURNING id", 8,
		       (struct db_value[]){ DB_TEXT(n->class), DB_TEXT(n->shape), DB_TEXT(sha256),
					    DB_BYTES(alone.bytes.data, alone.bytes.len), DB_TEXT(length),
					    DB_TEXT(n->parsed->detail), DB_TEXT(n->drift), DB_TEXT(n->node) });
	buf_free(&alone.bytes);
	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	if (facts_insert(db, "INSERT INTO fact (base, line, object, name, value) SELECT $1::int, * " FACTS_ROWS, base,
			 n->parsed->facts, e) ||
	    layout_key_query(db, layout, e, "INSERT INTO layout (base, kind, shape) VALUES ($1, 'base', $2) RETURNING"
					    " id, mark", 2,
			 (struct db_value[]){ DB_TEXT(base), DB_TEXT(n->shape) }) != 1)
		return -1;
	return 0;
}
