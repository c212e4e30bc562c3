/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/canon.h"
#include "topo/inventory.h"
#include "topo/pack.h"
#include "topo/shape.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BASES_TRIED "4"
#define STORED_MAX (2 * (size_t) CANON_MAX_BYTES)

/* A row's key, as PostgreSQL writes it. */
struct key {
	char text[24];
};

static void key_set(struct key *k, const PGresult *r, int column)
{
	snprintf(k->text, sizeof(k->text), "%s", PQgetvalue(r, 0, column));
}

/* The key in the first column of the first row: 1, 0 when there is no row, -1. */
static int key_query(struct db *db, struct key *k, struct err *e, const char *sql, unsigned n, const struct db_value *v)
{
	PGresult *r = db_query(db, e, sql, n, v);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0)
		key_set(k, r, 0);
	PQclear(r);
	return rows > 0 ? 1 : rows;
}

static int unpack(const PGresult *r, int kind, int bytes, const struct buf *base, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	int k = pack_kind_parse(PQgetvalue(r, 0, kind)), rc;

	if (db_bytes(r, 0, bytes, &packed))
		return err_set(e, "out of memory");
	rc = pack_open(k, packed.data, packed.len, base->data, base->len, STORED_MAX, out, e);
	buf_free(&packed);
	return rc;
}

static int base_open(const PGresult *r, int column, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	int rc;

	if (db_bytes(r, 0, column, &packed))
		return err_set(e, "out of memory");
	rc = pack_open(PACK_BASE, packed.data, packed.len, NULL, 0, STORED_MAX, out, e);
	buf_free(&packed);
	return rc;
}

int store_xml(struct db *db, const char *export, struct buf *out, struct err *e)
{
	enum { KIND, BYTES, BASE, ORIGINAL_KIND, ORIGINAL, ORIGINAL_BASE };
	struct buf base = {0}, xml = {0}, original = {0};
	PGresult *r = db_query(db, e,
		"SELECT d.kind, d.bytes, b.bytes, e.original_kind, e.original_bytes, e.original_base FROM export e"
		" JOIN document d ON d.id = e.document LEFT JOIN document b ON b.id = d.base WHERE e.id = $1",
		1, &DB_TEXT(export));
	int rc = -1;

	if (!r || PQntuples(r) != 1)
		goto done;
	if (!PQgetisnull(r, 0, ORIGINAL_BASE)) {
		if (store_xml(db, PQgetvalue(r, 0, ORIGINAL_BASE), &base, e) == 0)
			rc = unpack(r, ORIGINAL_KIND, ORIGINAL, &base, out, e);
		goto done;
	}
	if (!PQgetisnull(r, 0, BASE) && base_open(r, BASE, &base, e))
		goto done;
	if (unpack(r, KIND, BYTES, &base, &xml, e))
		goto done;
	if (PQgetisnull(r, 0, ORIGINAL)) {
		*out = xml;
		xml = (struct buf){0};
	} else if (unpack(r, ORIGINAL_KIND, ORIGINAL, &xml, &original, e)) {
		goto done;
	} else {
		*out = original;
	}
	rc = 0;
done:
	buf_free(&base);
	buf_free(&xml);
	PQclear(r);
	return rc;
}

/* How a document is to be stored: the smallest pack so far. */
struct choice {
	struct pack pack;
	struct key base;
};

static int consider(struct choice *c, const struct buf *base, const char *key, const struct buf *xml, struct err *e)
{
	struct pack p;

	if (pack_make(base ? base->data : NULL, base ? base->len : 0, xml->data, xml->len, &p, e))
		return -1;
	if (c->pack.bytes.data && p.bytes.len >= c->pack.bytes.len) {
		buf_free(&p.bytes);
		return 0;
	}
	buf_free(&c->pack.bytes);
	c->pack = p;
	snprintf(c->base.text, sizeof(c->base.text), "%s", p.kind == PACK_BASE ? "" : key);
	return 0;
}

/* A document by itself shrinks 10 to 20 times; what is far below that needs no comparison. */
static bool plainly_small(const struct choice *c, const struct buf *xml)
{
	return c->pack.bytes.data && c->pack.bytes.len <= xml->len / 64;
}

static int consider_bases(struct db *db, const char *shape, struct choice *c, const struct buf *xml, struct err *e)
{
	PGresult *ids = db_query(db, e,
		"SELECT id FROM document WHERE shape = $1 AND kind = 'base' ORDER BY id DESC LIMIT " BASES_TRIED,
				 1, &DB_TEXT(shape));
	int rc = ids ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(ids) && !plainly_small(c, xml); i++) {
		const char *id = PQgetvalue(ids, i, 0);
		struct buf base = {0};
		PGresult *r = db_query(db, e, "SELECT bytes FROM document WHERE id = $1", 1, &DB_TEXT(id));

		rc = !r || base_open(r, 0, &base, e) || consider(c, &base, id, xml, e) ? -1 : 0;
		PQclear(r);
		buf_free(&base);
	}
	PQclear(ids);
	return rc;
}

/* A base of its own is worth it when the difference is more than half of that. */
static int consider_alone(struct choice *c, const struct buf *xml, struct err *e)
{
	struct choice alone = {0};

	if (consider(&alone, NULL, "", xml, e))
		return -1;
	if (c->pack.bytes.data && c->pack.bytes.len <= alone.pack.bytes.len / 2) {
		buf_free(&alone.pack.bytes);
		return 0;
	}
	buf_free(&c->pack.bytes);
	*c = alone;
	return 0;
}

static int choose(struct db *db, const char *shape, const struct buf *xml, struct choice *out, struct err *e)
{
	struct choice c = {0};

	if (consider_bases(db, shape, &c, xml, e))
		goto error;
	if (!plainly_small(&c, xml)) {
		/* A thousand equal nodes boot at once: one of them becomes the base, and the others wait here to see it. */
		if (db_do(db, e, "SELECT 1 FROM shape WHERE name = $1 FOR UPDATE", 1, &DB_TEXT(shape)) ||
		    consider_bases(db, shape, &c, xml, e) || consider_alone(&c, xml, e))
			goto error;
	}
	*out = c;
	return 0;
error:
	buf_free(&c.pack.bytes);
	return -1;
}

static int add_shape(struct db *db, const char *text, char name[static SHAPE_NAME], struct err *e)
{
	char cores[16], pus[16];
	struct shape *s = shape_parse(text, e);
	struct key found;
	int rc;

	if (!s)
		return -1;
	shape_name(text, name);
	snprintf(cores, sizeof(cores), "%u", s->cores);
	snprintf(pus, sizeof(pus), "%u", s->pus);
	shape_free(s);
	if (db_do(db, e, "INSERT INTO shape (name, synthetic, cores, pus) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", 4,
		  (struct db_value[]){ DB_TEXT(name), DB_TEXT(text), DB_TEXT(cores), DB_TEXT(pus) }))
		return -1;
	rc = key_query(db, &found, e, "SELECT 1 FROM shape WHERE name = $1 AND synthetic = $2", 2,
		       (struct db_value[]){ DB_TEXT(name), DB_TEXT(text) });
	return rc == 0 ? err_set(e, "shape %s: another shape has this name", name) : rc < 0 ? -1 : 0;
}

static int insert_document(struct db *db, const char *sha256, const char *shape, const struct buf *xml, struct key *id,
			   struct receipt *out, struct err *e)
{
	struct choice c;
	char length[24];
	int rc;

	if (choose(db, shape, xml, &c, e))
		return -1;
	snprintf(length, sizeof(length), "%zu", xml->len);
	out->stored = pack_kind_name(c.pack.kind);
	out->stored_bytes = c.pack.bytes.len;
	rc = key_query(db, id, e, "INSERT INTO document (sha256, shape, kind, base, bytes, xml_bytes) VALUES ($1, $2, $3, $4, $5, $6)"
		       " ON CONFLICT (sha256) DO NOTHING RETURNING id", 6,
		       (struct db_value[]){ DB_TEXT(sha256), DB_TEXT(shape), DB_TEXT(out->stored),
					    DB_TEXT(*c.base.text ? c.base.text : NULL),
					    DB_BYTES(c.pack.bytes.data, c.pack.bytes.len), DB_TEXT(length) });
	buf_free(&c.pack.bytes);
	return rc;
}

static int add_document(struct db *db, const struct parsed *d, struct key *id, struct receipt *out, struct err *e)
{
	static const char find[] = "SELECT id FROM document WHERE sha256 = $1";
	char sha256[HASH_HEX];
	int rc;

	hash_hex(d->xml.data, d->xml.len, sha256);
	if (add_shape(db, d->shape, out->shape, e))
		return -1;
	out->stored = "known";
	out->stored_bytes = 0;
	rc = key_query(db, id, e, find, 1, &DB_TEXT(sha256));
	if (rc == 0)
		rc = insert_document(db, sha256, out->shape, &d->xml, id, out, e);
	if (rc == 0)
		rc = key_query(db, id, e, find, 1, &DB_TEXT(sha256));
	return rc == 1 ? 0 : -1;
}

/*
 * hwloc numbers objects in the order of discovery, which the canonical form undoes and which machines of one kind share: the
 * original of the base's first export is often nearer than the canonical document. That one has no base itself.
 */
static int consider_original(struct db *db, const struct key *document, const struct buf *original, struct choice *c, struct err *e)
{
	struct buf base = {0};
	struct key first;
	int rc = key_query(db, &first, e, "SELECT e.id FROM document d JOIN export e ON e.document = coalesce(d.base, d.id)"
			   " WHERE d.id = $1 ORDER BY e.id LIMIT 1", 1, &DB_TEXT(document->text));

	if (rc <= 0)
		return rc;
	rc = store_xml(db, first.text, &base, e) || consider(c, &base, first.text, original, e) ? -1 : 0;
	buf_free(&base);
	return rc;
}

static int add_export(struct db *db, const struct claim *c, const struct parsed *d, const struct key *document, struct key *id,
		      struct receipt *out, struct err *e)
{
	bool same = d->original.len == d->xml.len && !memcmp(d->original.data, d->xml.data, d->xml.len);
	struct choice o = {0};
	char length[24];
	int rc = -1;

	if (!same && (consider(&o, &d->xml, "", &d->original, e) || consider_original(db, document, &d->original, &o, e)))
		goto done;
	snprintf(length, sizeof(length), "%zu", d->original.len);
	rc = key_query(db, id, e,
		"INSERT INTO export (node, sha256, document, original_kind, original_bytes, original_base, xml_bytes, host)"
		       " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id", 8,
		       (struct db_value[]){ DB_TEXT(c->node), DB_TEXT(c->sha256), DB_TEXT(document->text),
					    DB_TEXT(same ? NULL : pack_kind_name(o.pack.kind)),
					    DB_BYTES(o.pack.bytes.data, o.pack.bytes.len), DB_TEXT(*o.base.text ? o.base.text : NULL),
					    DB_TEXT(length), DB_TEXT(d->host) });
	out->stored_bytes += o.pack.bytes.len;
done:
	buf_free(&o.pack.bytes);
	return rc == 1 ? 0 : -1;
}

static int check_export(struct db *db, const struct claim *c, const struct key *id, struct err *e)
{
	char sha256[HASH_HEX];
	struct buf xml = {0};

	if (store_xml(db, id->text, &xml, e))
		return err_within(e, "what was stored cannot be read back");
	hash_hex(xml.data, xml.len, sha256);
	buf_free(&xml);
	return strcmp(sha256, c->sha256) ? err_set(e, "what was stored is not what was sent") : 0;
}

/* Hold the node's row, so that its exports come one after another, and see that this one is not an old one. */
static enum store_result node_begin(struct db *db, const struct claim *c, const char *seq, struct err *e)
{
	struct db_value v[] = { DB_TEXT(c->node), DB_TEXT(c->boot_id), DB_TEXT(seq) };
	struct key one;
	int rc;

	if (db_do(db, e, "BEGIN", 0, NULL) ||
	    db_do(db, e, "INSERT INTO node (name) VALUES ($1) ON CONFLICT DO NOTHING", 1, v) ||
	    db_do(db, e, "SELECT 1 FROM node WHERE name = $1 FOR UPDATE", 1, v))
		return STORE_FAILED;
	rc = key_query(db, &one, e, "SELECT 1 FROM boot WHERE node = $1 AND boot_id = $2 AND seq >= $3 LIMIT 1", COUNT(v), v);
	return rc < 0 ? STORE_FAILED : rc ? STORE_STALE : STORE_OK;
}

/* The node's shape before this export is compared with the one it has now. */
static int node_finish(struct db *db, const struct claim *c, const char *seq, const struct key *export, struct receipt *out,
		       struct err *e)
{
	struct db_value v[] = { DB_TEXT(c->node), DB_TEXT(c->boot_id), DB_TEXT(seq), DB_TEXT(export->text) };
	PGresult *r = db_query(db, e,
		"SELECT d.shape, e.xml_bytes, d.shape IS DISTINCT FROM old.shape FROM export e JOIN document d ON d.id = e.document"
		" LEFT JOIN (SELECT d.shape FROM node n JOIN export e ON e.id = n.current JOIN document d ON d.id = e.document"
		" WHERE n.name = $1) old ON true WHERE e.id = $2", 2, (struct db_value[]){ v[0], v[3] });

	if (!r)
		return -1;
	snprintf(out->shape, sizeof(out->shape), "%s", PQgetvalue(r, 0, 0));
	out->xml_bytes = atol(PQgetvalue(r, 0, 1));
	out->moved = *PQgetvalue(r, 0, 2) == 't';
	PQclear(r);
	if (db_do(db, e, "INSERT INTO boot (node, boot_id, seq, export) VALUES ($1, $2, $3, $4)", COUNT(v), v) ||
	    db_do(db, e, "UPDATE node SET current = $2 WHERE name = $1", 2, (struct db_value[]){ v[0], v[3] }))
		return -1;
	return db_do(db, e, "COMMIT", 0, NULL);
}

static int find_export(struct db *db, const struct claim *c, struct key *id, struct err *e)
{
	return key_query(db, id, e, "SELECT id FROM export WHERE node = $1 AND sha256 = $2", 2,
			 (struct db_value[]){ DB_TEXT(c->node), DB_TEXT(c->sha256) });
}

enum store_result store_export(struct db *db, const struct claim *c, const struct parsed *d, struct receipt *out, struct err *e)
{
	struct receipt receipt = { .stored = "known" };
	struct key export, document;
	enum store_result rc;
	char seq[24];
	int found;

	snprintf(seq, sizeof(seq), "%" PRIu64, c->seq);
	if ((rc = node_begin(db, c, seq, e)))
		return rc;
	if ((found = find_export(db, c, &export, e)) < 0)
		return STORE_FAILED;
	if (!found && !d)
		return STORE_ABSENT;
	if (!found && (add_document(db, d, &document, &receipt, e) || add_export(db, c, d, &document, &export, &receipt, e) ||
		       check_export(db, c, &export, e)))
		return STORE_FAILED;
	if (node_finish(db, c, seq, &export, &receipt, e))
		return STORE_FAILED;
	*out = receipt;
	return STORE_OK;
}
