/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ingest/drift.h"
#include "reencode.h"
#include "hwcmp/compare.h"

struct following {
	struct upkeep_run *pass;
	int baseline;
	/* the nodes are in that class already; their drift was determined against its former baseline */
	bool own;
};

static int store_drift(struct upkeep_run *p, const struct reencode_document *h, const struct drift *drift,
		       struct err *e)
{
	return db_execute(p->db, e, "UPDATE drift SET severity = $2, changes = $3::jsonb WHERE node = $1 AND changes"
				    " <> $3::jsonb"
		     " AND EXISTS (SELECT 1 FROM node WHERE name = $1 AND sha256 = decode($4, 'hex'))", 4,
		     (struct db_value[]){ DB_TEXT(h->node), DB_TEXT(drift->severity), DB_TEXT(drift->json),
					  DB_TEXT(h->sha256) });
}

/* Is it the base but for identity? It differs from it in fields alone. 1 or 0, -1. */
static int is_twin(struct upkeep_run *p, int base, const struct buf *xml, struct err *e)
{
	const struct cached_base *cached = bases_acquire(p->bases, p->db, base, e);
	const struct base_metadata *meta = cached ? base_metadata(cached) : NULL;
	struct line_index lines;
	int rc = 1;

	if (!cached)
		return -1;
	if (line_index_build(xml->data, xml->len, &lines)) {
		bases_release(p->bases, cached);
		return err_set(e, "out of memory");
	}
	for (size_t i = 0; rc && i < cached->layout.n; i++) {
		unsigned line = cached->layout.fields[i].line;
		const unsigned *a = &cached->lines.starts[line], *b = &lines.starts[line];

		if (compare_fact(meta->facts[i].name) > SEVERITY_IDENTITY)
			rc = a[1] - a[0] == b[1] - b[0] && !memcmp(cached->text + a[0], xml->data + b[0], a[1] - a[0]);
	}
	line_index_free(&lines);
	bases_release(p->bases, cached);
	return rc;
}

/* The stored drift was determined against another base than the present baseline. */
static int update_drift(struct upkeep_run *p, int baseline, const struct reencode_document *h, struct err *e)
{
	struct drift_comparer with = { .bases = p->bases, .db = p->db, .parser = p->parser };
	struct drift drift;
	int rc = drift_from_base(&with, baseline, h->node, &h->xml, &drift, e);

	if (rc)
		return -1;
	rc = drift.json ? store_drift(p, h, &drift, e) : 0;
	drift_free(&drift);
	return rc;
}

static int to_accepted(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	const struct following *f = m->user;
	struct base_encoding encoding = {0};
	int rc = base_encode(f->pass, f->baseline, &h->xml, &encoding, e), twin;

	if (rc < 0)
		return -1;
	twin = rc == 0 ? is_twin(f->pass, f->baseline, &h->xml, e) : 0;
	if (twin < 0)
		rc = -1;
	else if (twin)
		rc = reencode_add(m, h, &encoding, e);
	else
		rc = f->own ? update_drift(f->pass, f->baseline, h, e) : 0;
	buf_free(&encoding.diff);
	return rc;
}

int rebase_accepted(struct upkeep_run *p, struct err *e)
{
	enum { LAYOUT, BASELINE, OWN, BEFORE };
	/*
	 * Each layout with drifting nodes, with their class if its baseline was accepted recently, and with the classes
	 * related by acceptance: later ones, and earlier ones that still have nodes.
	 */
	PGresult *r = db_query(p->db, e,
		"WITH RECURSIVE edge(a, b) AS (SELECT id, accepted_from FROM class WHERE accepted_from IS NOT NULL"
		" UNION ALL SELECT accepted_from, id FROM class WHERE accepted_from IS NOT NULL),"
		" kin(a, b) AS (SELECT a, a FROM edge UNION SELECT k.a, e.b FROM kin k JOIN edge e ON e.a = k.b),"
		" alive(class) AS (SELECT DISTINCT b.class FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON"
		" b.id = f.base),"
		" drifted(class, layout) AS (SELECT DISTINCT b.class, f.id FROM drift d JOIN node n ON n.name = d.node"
		" JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base)"
		" SELECT d.layout, c.baseline, k.a = k.b, CASE WHEN k.a = k.b THEN c.created + interval '1 day' END"
		" FROM drifted d JOIN kin k ON k.a = d.class JOIN class c ON c.id = k.b"
		" WHERE k.b > k.a OR (k.b = k.a AND c.accepted_from IS NOT NULL) OR k.b IN (SELECT class FROM alive)"
		" ORDER BY 3 DESC, c.id DESC, d.layout", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct following f = { p, atoi(PQgetvalue(r, i, BASELINE)), *PQgetvalue(r, i, OWN) == 't' };
		struct reencoding m = { .scope = SCOPE_DRIFTED, .from = PQgetvalue(r, i, LAYOUT), .clear_drift = true,
					.each = to_accepted, .user = &f,
				   .time = PQgetisnull(r, i, BEFORE) ? NULL : PQgetvalue(r, i, BEFORE) };

		rc = reencode_each(p, &m, e);
		if (m.made)
			log_info("upkeep: %llu nodes moved to the accepted class of base %d", m.made, f.baseline);
	}
	PQclear(r);
	return rc;
}
