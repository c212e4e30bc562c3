/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "reencode.h"

#include <assert.h>

/*
 * Notes
 *
 * Upkeep's thread alone. A batch is one statement: it locks its rows, skips those that others hold, and commits.
 */
#define ROWS "256"
#define BYTES "8388608"

/* Columns of read_sql, and of the rows to be moved. */
enum { NODE, SINCE, SHA256, XML_BYTES, DIFF };
enum { M_NODE, M_SINCE, M_SHA256, M_LAYOUT, M_MARK, M_DIFF, M_COUNT };

#define COLUMNS "since, encode(sha256, 'hex'), xml_bytes, diff"
/*
 * A batch is so many rows, and no more bytes than that beside its first row. Every select must use each value, for
 * PostgreSQL to know its type.
 */
#define BATCH(select, order) "SELECT * FROM (SELECT *, sum(octet_length(diff)) OVER (ORDER BY " order ") AS total" \
	" FROM (" select " ORDER BY " order " LIMIT " ROWS ") a) b WHERE total - octet_length(diff) < " BYTES \
	" AND $3::text IS NOT NULL AND coalesce($4::text, '') IS NOT NULL ORDER BY " order

static const char *const read_sql[] = {
	[SCOPE_PRESENT] = BATCH("SELECT name, " COLUMNS " FROM node WHERE layout = $1::int AND name > $2", "name"),
	[SCOPE_RECENT] = BATCH("SELECT name, " COLUMNS " FROM node WHERE layout = $1::int AND name > $2"
			 " AND ($4::timestamptz IS NULL OR since > $4::timestamptz)", "name"),
	[SCOPE_DRIFTED] = BATCH("SELECT name, " COLUMNS " FROM node n WHERE layout = $1::int AND name > $2 AND EXISTS"
							" (SELECT 1 FROM drift d"
			  " WHERE d.node = n.name AND ($4::timestamptz IS NULL OR d.since < $4::timestamptz))", "name"),
	[SCOPE_PAST] = BATCH("SELECT node, " COLUMNS " FROM past WHERE layout = $1::int AND (node, since) > ($2,"
						     " $3::timestamptz)",
		       "node, since"),
};

/* Locked rows are skipped: waiting for them while holding others would deadlock. */
#define WANTED "unnest($1::text[], $2::timestamptz[], $3::text[], $4::int[], $5::uuid[], $6::bytea[])" \
	" AS u(name, since, sha256, layout, mark, diff) JOIN layout f ON " LAYOUT_IS("u.layout", "u.mark")
#define SAME(name) "n." name " = u.name AND n.since = u.since AND n.sha256 = decode(u.sha256, 'hex') AND n.layout =" \
	" $7::int"
#define MOVE_NODES "WITH held AS (SELECT n.name, u.layout, u.diff FROM " WANTED " JOIN node n ON " SAME("name") \
	" FOR UPDATE OF n SKIP LOCKED)," \
	" moved AS (UPDATE node n SET layout = h.layout, diff = h.diff FROM held h WHERE n.name = h.name RETURNING" \
	" n.name), facts AS (DELETE FROM node_fact f USING moved m WHERE f.node = m.name RETURNING 1)," \
	" drifts AS (DELETE FROM drift d USING moved m WHERE d.node = m.name AND $8::bool)" \
	" SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM facts)"

static const char *const move_sql[] = {
	[SCOPE_PRESENT] = MOVE_NODES,
	[SCOPE_RECENT] = MOVE_NODES,
	[SCOPE_DRIFTED] = MOVE_NODES,
	[SCOPE_PAST] = "WITH held AS (SELECT n.node, n.since, u.layout, u.diff FROM"
		       " " WANTED " JOIN past n ON " SAME("node")
		" FOR UPDATE OF n SKIP LOCKED),"
		" moved AS (UPDATE past n SET layout = h.layout, diff = h.diff FROM held h"
		" WHERE n.node = h.node AND n.since = h.since AND NOT $8::bool RETURNING n.node) SELECT count(*), 0"
		" FROM moved",
};

/* --- encoding against a base --- */

struct one_base {
	struct upkeep_run *run;
	int base;
};

static int rank_one(const struct cached_base *b, const void *user)
{
	return b->base == ((const struct one_base *) user)->base ? 0 : -1;
}

static struct db *connection(void *user, struct err *)
{
	return ((struct one_base *) user)->run->db;
}

int base_encode(struct upkeep_run *p, int base, const struct buf *xml, struct base_encoding *out, struct err *e)
{
	const struct bases_encoder by = { rank_one, connection, &(struct one_base){ p, base } };
	const struct cached_base *cached = bases_acquire(p->bases, p->db, base, e), *fits;
	struct base_encoding f = {0};
	int rc;

	if (!cached)
		return -1;
	if (cached->len == xml->len && !memcmp(cached->text, xml->data, xml->len)) {
		rc = layout_key_query(p->db, &f.layout, e, "SELECT f.id, f.mark FROM layout f JOIN base b ON b.id ="
				      " f.base WHERE b.id = $1 AND b.sha256 = decode($2, 'hex') AND f.kind = 'base'",
				      2, (struct db_value[]){ DB_NUMBER(base),
							      DB_TEXT(base_metadata(cached)->sha256) });
		rc = rc == 1 ? 0 : rc ? -1 : err_set(e, "base %d has no layout of its own", base);
	} else if ((rc = bases_encode(p->bases, &by, xml, &fits, &f.diff, e)) == 0) {
		f.layout = base_metadata(fits)->layout;
		bases_release(p->bases, fits);
	}
	bases_release(p->bases, cached);
	if (rc == 0)
		*out = f;
	return rc;
}

/* --- moving rows --- */

void reencode_add(struct reencoding *m, const struct reencode_document *h, const struct base_encoding *encoding)
{
	assert(*encoding->layout.id && m->from);
	db_array_text(&m->column[M_NODE], h->node);
	db_array_text(&m->column[M_SINCE], h->since);
	db_array_text(&m->column[M_SHA256], h->sha256);
	db_array_text(&m->column[M_LAYOUT], encoding->layout.id);
	db_array_text(&m->column[M_MARK], encoding->layout.mark);
	db_array_bytes(&m->column[M_DIFF], encoding->diff.data, encoding->diff.len);
	m->n++;
}

static int reencode_apply(struct upkeep_run *p, struct reencoding *m, struct err *e)
{
	struct db_value more[] = { DB_TEXT(m->from), DB_TEXT(m->clear_drift ? "t" : "f") };
	unsigned long long moved;
	PGresult *r;

	if (!m->n)
		return 0;
	m->n = 0;
	if (!(r = db_query_arrays(p->db, false, move_sql[m->scope], M_COUNT, m->column, 2, more, e)))
		return -1;
	moved = strtoull(PQgetvalue(r, 0, 0), NULL, 10);
	m->made += moved;
	p->emptied[m->scope == SCOPE_PAST ? IN_PAST : IN_NODE] += moved;
	p->emptied[IN_NODE_FACT] += strtoull(PQgetvalue(r, 0, 1), NULL, 10);
	PQclear(r);
	return 0;
}

static int decode_row(const struct base_decoder *o, const PGresult *r, int row, struct reencode_document *h,
		      struct err *e)
{
	struct buf diff = {0};
	int rc;

	h->node = PQgetvalue(r, row, NODE);
	h->since = PQgetvalue(r, row, SINCE);
	h->sha256 = PQgetvalue(r, row, SHA256);
	h->xml = (struct buf) {0};
	if (db_bytes(r, row, DIFF, &diff))
		return err_set(e, "out of memory");
	rc = decoder_run(o, &diff, strtoul(PQgetvalue(r, row, XML_BYTES), NULL, 10), h->sha256, &h->xml, e);
	h->kept = diff.len;
	buf_free(&diff);
	return rc ? err_within(e, "%s", h->node) : 0;
}

/* The number of rows, or -1. An unreadable document must not hold back the others: the first is reported at the end. */
static int process_batch(struct upkeep_run *p, struct reencoding *m, const struct base_decoder *o, const PGresult *r,
			 struct err *e)
{
	int rows = PQntuples(r);

	for (int i = 0; i < rows && upkeep_continues(p); i++) {
		struct reencode_document h;
		int rc;

		if (decode_row(o, r, i, &h, m->bad ? NULL : &m->first_bad)) {
			m->bad++;
			continue;
		}
		rc = m->each(m, &h, e);
		buf_free(&h.xml);
		if (rc)
			return -1;
	}
	return reencode_apply(p, m, e) || (m->after && m->after(m, e)) ? -1 : rows;
}

int reencode_each(struct upkeep_run *p, struct reencoding *m, struct err *e)
{
	char node[256] = "", since[64] = "-infinity";
	struct base_decoder o;
	int rows;

	if (decoder_open(p->bases, p->db, m->from, &o, e))
		return -1;
	do {
		PGresult *r = db_query(p->db, e, read_sql[m->scope], 4,
				       (struct db_value[]){ DB_TEXT(m->from), DB_TEXT(node), DB_TEXT(since),
							    DB_TEXT(m->time) });

		rows = r ? process_batch(p, m, &o, r, e) : -1;
		if (rows > 0) {
			snprintf(node, sizeof(node), "%s", PQgetvalue(r, rows - 1, NODE));
			snprintf(since, sizeof(since), "%s", PQgetvalue(r, rows - 1, SINCE));
		}
		PQclear(r);
	} while (rows > 0 && upkeep_pause(p));
	m->whole = rows == 0;
	decoder_close(p->bases, &o);
	for (int c = 0; c < M_COUNT; c++)
		buf_free(&m->column[c]);
	if (rows >= 0 && m->bad)
		return err_set(e, "%s", m->first_bad.text);
	return rows < 0 ? -1 : 0;
}
