/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "reencode.h"

#define FIELD_BYTES "128"	/* a row of the table field with its two index entries */
/* Another topiaryd may have made them for an export that it is about to commit. */
#define AGE "interval '1 hour'"
#define DELETED_AT_ONCE "16"

/* --- old layouts --- */

struct old_layout {
	struct upkeep_run *pass;
	int base;
	size_t share;	/* bytes that the layout costs for each of its documents */
};

static int to_latest_layout(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	const struct old_layout *o = m->user;
	struct base_encoding encoding;
	int rc = base_encode(o->pass, o->base, &h->xml, &encoding, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	rc = strcmp(encoding.layout.id, m->from) &&
		encoding.diff.len <= h->kept + o->share ? reencode_add(m, h, &encoding, e) : 0;
	buf_free(&encoding.diff);
	return rc;
}

/* Present and past documents. */
static int leave_layout(struct upkeep_run *p, const char *layout, struct old_layout *o, struct err *e)
{
	struct reencoding now = { .scope = SCOPE_PRESENT, .from = layout, .each = to_latest_layout, .user = o },
		past = now;
	int rc;

	past.scope = SCOPE_PAST;
	rc = reencode_each(p, &now, e) || reencode_each(p, &past, e) ? -1 : 0;

	if (now.made + past.made)
		log_info("upkeep: %llu documents moved to the latest field layout of base %d", now.made + past.made,
			 o->base);
	return rc;
}

int rebase_layouts(struct upkeep_run *p, struct err *e)
{
	enum { LAYOUT, BASE, SHARE };
	PGresult *r = db_query(p->db, e,
		"SELECT f.id, f.base, (SELECT count(*) FROM field w WHERE w.layout = f.id) *"
		" " FIELD_BYTES " / u.documents"
		" FROM (SELECT layout, count(*) AS documents FROM (SELECT layout FROM node UNION ALL SELECT layout FROM"
		" past) o GROUP BY layout) u"
		" JOIN layout f ON f.id = u.layout AND f.kind = 'fields'"
		" WHERE f.id < (SELECT max(l.id) FROM layout l WHERE l.base = f.base AND l.kind = 'fields')", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct old_layout o = { p, atoi(PQgetvalue(r, i, BASE)), strtoul(PQgetvalue(r, i, SHARE), NULL, 10) };

		if (o.share)
			rc = leave_layout(p, PQgetvalue(r, i, LAYOUT), &o, e);
	}
	PQclear(r);
	return rc;
}

/* --- unused rows --- */

/* Layouts of bases that stay; their latest field layouts stay too, since they are cached. */
#define UNUSED_LAYOUTS "DELETE FROM layout WHERE id IN (SELECT f.id FROM layout f WHERE f.created < now() - " AGE \
	" AND (f.kind = 'patch' OR (f.kind = 'fields'" \
	" AND f.id < (SELECT max(l.id) FROM layout l WHERE l.base = f.base AND l.kind = 'fields')))" \
	" AND NOT EXISTS (SELECT 1 FROM node n WHERE n.layout = f.id) AND NOT EXISTS (SELECT 1 FROM past o WHERE" \
	" o.layout = f.id)" \
	" ORDER BY f.id LIMIT " DELETED_AT_ONCE ") RETURNING base"
#define UNUSED_BASE "b.created < now() - " AGE " AND NOT EXISTS (SELECT 1 FROM layout f WHERE f.base = b.id AND" \
	" (f.created >= now() - " AGE " OR f.id IN (SELECT DISTINCT n.layout FROM node n)" \
	" OR f.id IN (SELECT DISTINCT o.layout FROM past o)))"
#define UNUSED_BASES "DELETE FROM base WHERE id IN (SELECT b.id FROM base b WHERE " UNUSED_BASE \
	" AND NOT EXISTS (SELECT 1 FROM class c WHERE c.baseline = b.id)" \
	" ORDER BY b.id LIMIT " DELETED_AT_ONCE ") RETURNING id"
/* A class without nodes, and its baseline; not one that was accepted, or from which one was: nodes may follow there. */
#define UNUSED_CLASSES "WITH unused AS (SELECT c.id FROM class c WHERE c.created < now() - " AGE \
	" AND c.accepted_from IS NULL AND NOT EXISTS (SELECT 1 FROM class a WHERE a.accepted_from = c.id)" \
	" AND NOT EXISTS (SELECT 1 FROM base b WHERE b.class = c.id AND NOT (" UNUSED_BASE "))" \
	" ORDER BY c.id LIMIT " DELETED_AT_ONCE ")," \
	" gone AS (DELETE FROM class WHERE id IN (SELECT id FROM unused))" \
	" DELETE FROM base WHERE class IN (SELECT id FROM unused) RETURNING id"

/* An export committed meanwhile wins by its foreign key: then all rows stay until the next run. */
static int delete_unused(struct upkeep_run *p, const char *sql, bool bases, struct err *e)
{
	int rows;

	do {
		PGresult *r = db_query(p->db, e, sql, 0, NULL);

		if (!r)
			return strcmp(db_state(p->db), "23503") ? -1 : 0;
		rows = PQntuples(r);
		for (int i = 0; bases && i < rows; i++) {
			bases_drop(p->bases, atoi(PQgetvalue(r, i, 0)));
			log_info("upkeep: base %s deleted: no document uses it", PQgetvalue(r, i, 0));
		}
		PQclear(r);
	} while (rows && upkeep_pause(p));
	return 0;
}

int rebase_delete_unused(struct upkeep_run *p, struct err *e)
{
	return delete_unused(p, UNUSED_LAYOUTS, false, e) || delete_unused(p, UNUSED_BASES, true, e) ||
	       delete_unused(p, UNUSED_CLASSES, true, e) ? -1 : 0;
}

int rebase_refresh(struct upkeep_run *p, struct err *e)
{
	return bases_verify(p->bases, p->db, e) || bases_refresh(p->bases, p->db, e) ? -1 : 0;
}
