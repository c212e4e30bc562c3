/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "document.h"

#include <stdatomic.h>

/*
 * Notes
 *
 * The cache of verified rows is an array of atomic hashes without a lock: two threads that write a slot at once lose an
 * entry, which is then verified again.
 */
#define SETS 65536
#define WAYS 4

struct verified_cache {
	_Atomic uint64_t keys[SETS][WAYS];
};

struct verified_cache *verified_cache_new(void)
{
	return calloc(1, sizeof(struct verified_cache));
}

void verified_cache_free(struct verified_cache *v)
{
	free(v);
}

/* The first 64 bits of a hash over everything that determines the document; 0 when out of memory. */
static uint64_t key_of(const struct document_row *row)
{
	char sha256[HASH_HEX], first[17];
	struct buf all = {0};
	uint64_t key = 0;

	buf_printf(&all, "%s %s %s %s ", row->node, row->sha256, row->layout.id, row->layout.mark);
	buf_add(&all, row->diff.data ? row->diff.data : "", row->diff.len);
	if (!all.failed) {
		hash_hex(all.data, all.len, sha256);
		snprintf(first, sizeof(first), "%.16s", sha256);
		key = strtoull(first, NULL, 16);
	}
	buf_free(&all);
	return key;
}

/* The slot of a key in its set; when it is not cached, a free slot or the one to be replaced. */
static _Atomic uint64_t *slot_for(struct verified_cache *v, uint64_t key)
{
	_Atomic uint64_t *set = v->keys[key % SETS];

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i] == key)
			return &set[i];
	for (unsigned i = 0; i < WAYS; i++)
		if (!set[i])
			return &set[i];
	return &set[key / SETS % WAYS];
}

void verified_cache_add(struct verified_cache *v, const struct document_row *row)
{
	uint64_t key = key_of(row);

	*slot_for(v, key) = key;
}

int document_rebuild(struct bases *b, struct db *db, const struct document_row *row, struct buf *out, struct err *e)
{
	struct buf xml = {0};
	struct base_decoder o = {0};
	int rc = row->base &&
		decoder_open_cached(b, row->base, &row->layout, &o) ? 0 : decoder_open(b, db, row->layout.id, &o, e);

	if (rc == 0)
		rc = decoder_run(&o, &row->diff, row->xml_bytes, row->sha256, out ? out : &xml, e);
	decoder_close(b, &o);
	buf_free(&xml);
	return rc;
}

int document_verify(struct verified_cache *v, struct bases *b, struct db *db, const struct document_row *row,
		    struct err *e)
{
	uint64_t key = key_of(row);

	if (key && *slot_for(v, key) == key)
		return 0;
	if (document_rebuild(b, db, row, NULL, e))
		return -1;
	*slot_for(v, key) = key;
	return 0;
}

/* --- documents of nodes --- */

enum { LAYOUT, DIFF, SHA256, XML_BYTES };
#define COLUMNS "layout, diff, encode(sha256, 'hex'), xml_bytes"
#define NOW "SELECT " COLUMNS " FROM node WHERE name = $1"
#define THEN "SELECT " COLUMNS " FROM (SELECT since, layout, diff, sha256, xml_bytes FROM node WHERE name = $1 UNION" \
	" ALL" \
	" SELECT since, layout, diff, sha256, xml_bytes FROM past WHERE node = $1) every WHERE since <=" \
	" $2::timestamptz ORDER BY since DESC LIMIT 1"

enum document_result document_load(struct bases *b, struct db *db, const char *node, const char *when, struct buf *out,
				   char sha256[HASH_HEX], struct err *e)
{
	PGresult *r = db_query_prepared(db, e, when ? THEN : NOW, when ? 2 : 1,
					(struct db_value[]){ DB_TEXT(node), DB_TEXT(when) });
	enum document_result rc = DOCUMENT_OK;
	struct document_row row = {0};

	if (!r) {
		if (strncmp(db_state(db), "22", 2))
			return DOCUMENT_FAILED;
		err_set(e, "%s: invalid time: %.80s", node, when);
		return DOCUMENT_BAD_TIME;
	}
	if (!PQntuples(r)) {
		err_set(e, "%s: %s", node, when ? "no topology stored at that time" : "not in the registry");
		rc = DOCUMENT_ABSENT;
	} else {
		row.sha256 = PQgetvalue(r, 0, SHA256);
		row.xml_bytes = strtoul(PQgetvalue(r, 0, XML_BYTES), NULL, 10);
		snprintf(row.layout.id, sizeof(row.layout.id), "%s", PQgetvalue(r, 0, LAYOUT));
		if (db_bytes(r, 0, DIFF, &row.diff) ? err_set(e, "out of memory") :
						      document_rebuild(b, db, &row, out, e)) {
			err_within(e, "%s", node);
			rc = DOCUMENT_FAILED;
		} else if (sha256) {
			memcpy(sha256, row.sha256, HASH_HEX);
		}
		buf_free(&row.diff);
	}
	PQclear(r);
	return rc;
}
