/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rebase.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "drift.h"
#include "moves.h"
#include "topo/compare.h"

struct following {
	struct pass *pass;
	int golden;
	bool own;	/* the nodes are in that class already, and what they drift by is told from what was expected before */
};

static int note_drift(struct pass *p, const struct held *h, const struct drift *drift, struct err *e)
{
	return db_do(p->db, e, "UPDATE drift SET severity = $2, changes = $3::jsonb WHERE node = $1 AND changes <> $3::jsonb"
		     " AND EXISTS (SELECT 1 FROM node WHERE name = $1 AND sha256 = decode($4, 'hex'))", 4,
		     (struct db_value[]){ DB_TEXT(h->node), DB_TEXT(drift->severity), DB_TEXT(drift->json), DB_TEXT(h->sha256) });
}

/* Is it what the base is but for its identity? It differs from it in fields alone. 1 or 0, -1. */
static int is_twin(struct pass *p, int base, const struct buf *xml, struct err *e)
{
	const struct book *book = bases_take(p->bases, p->db, base, e);
	const struct base_note *note = book ? book->note : NULL;
	struct lined lines;
	int rc = 1;

	if (!book)
		return -1;
	if (lined_make(xml->data, xml->len, &lines)) {
		shelf_put(bases_shelf(p->bases), book);
		return err_set(e, "out of memory");
	}
	for (size_t i = 0; rc && i < book->fields.n; i++) {
		unsigned line = book->fields.fields[i].line;
		const unsigned *a = &book->lines.starts[line], *b = &lines.starts[line];

		if (compare_fact(note->facts[i].name) > SEVERITY_IDENTITY)
			rc = a[1] - a[0] == b[1] - b[0] && !memcmp(book->text + a[0], xml->data + b[0], a[1] - a[0]);
	}
	lined_free(&lines);
	shelf_put(bases_shelf(p->bases), book);
	return rc;
}

/* The words that are there tell of another base than the golden one of now. */
static int tell_anew(struct pass *p, int golden, const struct held *h, struct err *e)
{
	struct comparer with = { p->bases, p->db, p->parser };
	struct drift drift;
	int rc = drift_from_base(&with, golden, h->node, &h->xml, &drift, e);

	if (rc)
		return -1;
	rc = drift.json ? note_drift(p, h, &drift, e) : 0;
	drift_free(&drift);
	return rc;
}

static int to_accepted(struct moves *m, const struct held *h, struct err *e)
{
	const struct following *f = m->user;
	struct fit fit = {0};
	int rc = fit_base(f->pass, f->golden, &h->xml, &fit, e), twin;

	if (rc < 0)
		return -1;
	twin = rc == 0 ? is_twin(f->pass, f->golden, &h->xml, e) : 0;
	if (twin < 0)
		rc = -1;
	else if (twin)
		rc = moves_add(m, h, &fit, e);
	else
		rc = f->own ? tell_anew(f->pass, f->golden, h, e) : 0;
	buf_free(&fit.diff);
	return rc;
}

int rebase_accepted(struct pass *p, struct err *e)
{
	enum { FORM, GOLDEN, OWN, BEFORE };
	/*
	 * Each form in which nodes drift from a class, with that class, when what it expects was accepted of late, and with those that
	 * are its kin by acceptance: later ones, and earlier ones as long as some nodes are still so.
	 */
	PGresult *r = db_query(p->db, e,
		"WITH RECURSIVE edge(a, b) AS (SELECT id, accepted_from FROM class WHERE accepted_from IS NOT NULL"
		" UNION ALL SELECT accepted_from, id FROM class WHERE accepted_from IS NOT NULL),"
		" kin(a, b) AS (SELECT a, a FROM edge UNION SELECT k.a, e.b FROM kin k JOIN edge e ON e.a = k.b),"
		" alive(class) AS (SELECT DISTINCT b.class FROM node n JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base),"
		" drifted(class, form) AS (SELECT DISTINCT b.class, f.id FROM drift d JOIN node n ON n.name = d.node"
		" JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base)"
		" SELECT d.form, c.golden, k.a = k.b, CASE WHEN k.a = k.b THEN c.made + interval '1 day' END"
		" FROM drifted d JOIN kin k ON k.a = d.class JOIN class c ON c.id = k.b"
		" WHERE k.b > k.a OR (k.b = k.a AND c.accepted_from IS NOT NULL) OR k.b IN (SELECT class FROM alive)"
		" ORDER BY 3 DESC, c.id DESC, d.form", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && pass_goes_on(p); i++) {
		struct following f = { p, atoi(PQgetvalue(r, i, GOLDEN)), *PQgetvalue(r, i, OWN) == 't' };
		struct moves m = { .who = DRIFTED, .from = PQgetvalue(r, i, FORM), .undrift = true, .each = to_accepted, .user = &f,
				   .time = PQgetisnull(r, i, BEFORE) ? NULL : PQgetvalue(r, i, BEFORE) };

		rc = moves_each(p, &m, e);
		if (m.made)
			log_info("upkeep: %llu nodes are what was accepted as base %d", m.made, f.golden);
	}
	PQclear(r);
	return rc;
}
