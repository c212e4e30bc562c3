/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "moves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define ROWS "256"
#define BYTES "8388608"
#define LOOKS 16	/* at a base, while nodes that boot give it wider forms */

/* Columns of what READ gives, and of what is moved. */
enum { NODE, SINCE, SHA256, XML_BYTES, DIFF };
enum { M_NODE, M_SINCE, M_SHA256, M_FORM, M_DIFF, M_COUNT };

#define COLUMNS "since, encode(sha256, 'hex'), xml_bytes, diff"
/* A batch is so many rows, and no more bytes than that beside its first row. Every select must tell the type of every value. */
#define BATCH(select, order) "SELECT * FROM (SELECT *, sum(octet_length(diff)) OVER (ORDER BY " order ") AS total" \
	" FROM (" select " ORDER BY " order " LIMIT " ROWS ") a) b WHERE total - octet_length(diff) < " BYTES \
	" AND $3::text IS NOT NULL AND coalesce($4::text, '') IS NOT NULL ORDER BY " order

static const char *const read_sql[] = {
	[PRESENT] = BATCH("SELECT name, " COLUMNS " FROM node WHERE form = $1::int AND name > $2", "name"),
	[RECENT] = BATCH("SELECT name, " COLUMNS " FROM node WHERE form = $1::int AND name > $2"
			 " AND ($4::timestamptz IS NULL OR since > $4::timestamptz)", "name"),
	[DRIFTED] = BATCH("SELECT name, " COLUMNS " FROM node n WHERE form = $1::int AND name > $2 AND EXISTS (SELECT 1 FROM drift d"
			  " WHERE d.node = n.name AND ($4::timestamptz IS NULL OR d.since < $4::timestamptz))", "name"),
	[PAST] = BATCH("SELECT node, " COLUMNS " FROM past WHERE form = $1::int AND (node, since) > ($2, $3::timestamptz)",
		       "node, since"),
};

/* Rows that somebody else holds are skipped: waiting for them while holding others is how deadlocks are made. */
#define WANTED "unnest($2::text[], $3::timestamptz[], $4::text[], $5::int[], $6::bytea[]) AS u(name, since, sha256, form, diff)"
#define SAME(name) "n." name " = u.name AND n.since = u.since AND n.sha256 = decode(u.sha256, 'hex') AND n.form = $1::int"
#define MOVE_NODES "WITH held AS (SELECT n.name, u.form, u.diff FROM " WANTED " JOIN node n ON " SAME("name") \
	" FOR UPDATE OF n SKIP LOCKED)," \
	" moved AS (UPDATE node n SET form = h.form, diff = h.diff FROM held h WHERE n.name = h.name RETURNING n.name)," \
	" facts AS (DELETE FROM node_fact f USING moved m WHERE f.node = m.name RETURNING 1)," \
	" drifts AS (DELETE FROM drift d USING moved m WHERE d.node = m.name AND $7::bool)" \
	" SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM facts)"

static const char *const move_sql[] = {
	[PRESENT] = MOVE_NODES,
	[RECENT] = MOVE_NODES,
	[DRIFTED] = MOVE_NODES,
	[PAST] = "WITH held AS (SELECT n.node, n.since, u.form, u.diff FROM " WANTED " JOIN past n ON " SAME("node")
		" FOR UPDATE OF n SKIP LOCKED),"
		" moved AS (UPDATE past n SET form = h.form, diff = h.diff FROM held h"
		" WHERE n.node = h.node AND n.since = h.since AND NOT $7::bool RETURNING n.node) SELECT count(*), 0 FROM moved",
};

/* --- how a base holds a document --- */

static int own_form(struct pass *p, int base, char form[static 16], struct err *e)
{
	char key[16];
	PGresult *r;
	int rc = -1;

	snprintf(key, sizeof(key), "%d", base);
	r = db_query(p->db, e, "SELECT id FROM form WHERE base = $1 AND kind = 'base'", 1, &DB_TEXT(key));
	if (r && PQntuples(r)) {
		snprintf(form, 16, "%s", PQgetvalue(r, 0, 0));
		rc = 0;
	} else if (r) {
		err_set(e, "base %d has no form of its own", base);
	}
	PQclear(r);
	return rc;
}

/* 0, 1, -1 as fit_base has it; 2: the form was widened, look again. */
static int fit_book(struct pass *p, const struct book *book, const struct buf *xml, struct fit *f, struct err *e)
{
	struct form wider;
	bool widened;
	int rc = form_encode(&book->fields, &book->lines, xml->data, xml->len, &f->diff);

	if (rc == 0) {
		snprintf(f->form, sizeof(f->form), "%d", book->form);
		return book_gives_back(book, &f->diff, xml, e);
	}
	f->diff.len = 0;
	if (rc > 0)
		rc = form_learn(&book->fields, &book->lines, xml->data, xml->len, &wider, &widened);
	if (rc < 0)
		return err_set(e, "out of memory");
	if (rc > 0)
		return 1;
	rc = bases_widen(p->bases, p->db, book, &wider, e);
	form_free(&wider);
	return rc ? -1 : 2;
}

int fit_base(struct pass *p, int base, const struct buf *xml, struct fit *out, struct err *e)
{
	struct fit f = {0};
	int rc = 2;

	for (int look = 0; rc == 2 && look < LOOKS; look++) {
		const struct book *book = bases_take(p->bases, p->db, base, e);

		if (!book)
			rc = -1;
		else if (book->len == xml->len && !memcmp(book->text, xml->data, xml->len))
			rc = own_form(p, base, f.form, e);
		else
			rc = fit_book(p, book, xml, &f, e);
		if (book)
			shelf_put(bases_shelf(p->bases), book);
	}
	if (rc == 0)
		*out = f;
	else
		buf_free(&f.diff);
	return rc == 2 ? 1 : rc;
}

/* --- moving --- */

static void moves_reset(struct moves *m)
{
	m->n = 0;
	for (int c = 0; c < M_COUNT; c++)
		db_array(&m->column[c]);
}

int moves_add(struct moves *m, const struct held *h, const struct fit *fit, struct err *e)
{
	db_array_text(&m->column[M_NODE], h->node);
	db_array_text(&m->column[M_SINCE], h->since);
	db_array_text(&m->column[M_SHA256], h->sha256);
	db_array_text(&m->column[M_FORM], fit->form);
	db_array_bytes(&m->column[M_DIFF], fit->diff.data, fit->diff.len);
	m->n++;
	for (int c = 0; c < M_COUNT; c++)
		if (m->column[c].failed)
			return err_set(e, "out of memory");
	return 0;
}

static void count(struct pass *p, struct moves *m, const PGresult *r)
{
	unsigned long long moved = strtoull(PQgetvalue(r, 0, 0), NULL, 10);

	m->made += moved;
	p->emptied[m->who == PAST ? IN_PAST : IN_NODE] += moved;
	p->emptied[IN_NODE_FACT] += strtoull(PQgetvalue(r, 0, 1), NULL, 10);
}

static int moves_make(struct pass *p, struct moves *m, struct err *e)
{
	struct db_value v[M_COUNT + 2] = { DB_TEXT(m->from) };
	PGresult *r;

	if (!m->n)
		return 0;
	for (int c = 0; c < M_COUNT; c++) {
		db_array_end(&m->column[c]);
		if (m->column[c].failed)
			return err_set(e, "out of memory");
		v[1 + c] = DB_TEXT(m->column[c].data);
	}
	v[M_COUNT + 1] = DB_TEXT(m->undrift ? "t" : "f");
	r = db_query(p->db, e, move_sql[m->who], M_COUNT + 2, v);
	if (r)
		count(p, m, r);
	PQclear(r);
	moves_reset(m);
	return r ? 0 : -1;
}

/* The document of one row; its hash is what the node signed. */
static int hold(const struct opened *o, const PGresult *r, int row, struct held *h, struct err *e)
{
	struct buf diff = {0}, xml = {0};
	char sha256[HASH_HEX];
	int rc;

	h->node = PQgetvalue(r, row, NODE);
	h->since = PQgetvalue(r, row, SINCE);
	h->sha256 = PQgetvalue(r, row, SHA256);
	if (db_bytes(r, row, DIFF, &diff))
		return err_set(e, "out of memory");
	rc = opened_decode(o, diff.data, diff.len, strtoul(PQgetvalue(r, row, XML_BYTES), NULL, 10), &xml, e);
	h->kept = diff.len;
	buf_free(&diff);
	hash_hex(xml.data, xml.len, sha256);
	if (rc == 0 && strcmp(sha256, h->sha256))
		rc = err_set(e, "what was stored does not give the document back");
	if (rc) {
		buf_free(&xml);
		return err_within(e, "%s", h->node);
	}
	h->xml = xml;
	return 0;
}

/*
 * The number of rows, or -1. A document that cannot be read back must not keep the others where they are: the first such is told when
 * all is done.
 */
static int batch(struct pass *p, struct moves *m, const struct opened *o, const PGresult *r, struct err *e)
{
	int rows = PQntuples(r);

	moves_reset(m);
	for (int i = 0; i < rows && pass_goes_on(p); i++) {
		struct held h;
		int rc;

		if (hold(o, r, i, &h, m->bad ? NULL : &m->first_bad)) {
			m->bad++;
			continue;
		}
		rc = m->each(m, &h, e);
		buf_free(&h.xml);
		if (rc)
			return -1;
	}
	return moves_make(p, m, e) || (m->after && m->after(m, e)) ? -1 : rows;
}

int moves_each(struct pass *p, struct moves *m, struct err *e)
{
	char node[256] = "", since[64] = "-infinity";
	struct opened o;
	int rows;

	if (bases_open(p->bases, p->db, m->from, &o, e))
		return -1;
	do {
		PGresult *r = db_query(p->db, e, read_sql[m->who], 4,
				       (struct db_value[]){ DB_TEXT(m->from), DB_TEXT(node), DB_TEXT(since), DB_TEXT(m->time) });

		rows = r ? batch(p, m, &o, r, e) : -1;
		if (rows > 0) {
			snprintf(node, sizeof(node), "%s", PQgetvalue(r, rows - 1, NODE));
			snprintf(since, sizeof(since), "%s", PQgetvalue(r, rows - 1, SINCE));
		}
		PQclear(r);
	} while (rows > 0 && pass_rest(p));
	m->whole = rows == 0;
	opened_close(p->bases, &o);
	for (int c = 0; c < M_COUNT; c++)
		buf_free(&m->column[c]);
	if (rows >= 0 && m->bad)
		return err_set(e, "%s", m->first_bad.text);
	return rows < 0 ? -1 : 0;
}
