/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rebase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "moves.h"

#define FIELD_BYTES "128"	/* a row of field with its two index entries */
/* Another topiaryd may have made them for an export that it is about to commit. */
#define AGE "interval '1 hour'"
#define DELETED_AT_ONCE "16"

/* --- old forms --- */

struct old_form {
	struct pass *pass;
	int base;
	size_t share;	/* bytes that the form costs, for each of its documents */
};

static int to_latest(struct moves *m, const struct held *h, struct err *e)
{
	const struct old_form *o = m->user;
	struct fit fit;
	int rc = fit_base(o->pass, o->base, &h->xml, &fit, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	rc = strcmp(fit.form, m->from) && fit.diff.len <= h->kept + o->share ? moves_add(m, h, &fit, e) : 0;
	buf_free(&fit.diff);
	return rc;
}

/* Both what nodes export and what they did. */
static int leave_form(struct pass *p, const char *form, struct old_form *o, struct err *e)
{
	struct moves now = { .who = PRESENT, .from = form, .each = to_latest, .user = o }, past = now;
	int rc;

	past.who = PAST;
	rc = moves_each(p, &now, e) || moves_each(p, &past, e) ? -1 : 0;

	if (now.made + past.made)
		log_info("upkeep: %llu documents moved to the latest form of base %d", now.made + past.made, o->base);
	return rc;
}

int rebase_forms(struct pass *p, struct err *e)
{
	enum { FORM, BASE, SHARE };
	PGresult *r = db_query(p->db, e,
		"SELECT f.id, f.base, (SELECT count(*) FROM field w WHERE w.form = f.id) * " FIELD_BYTES " / u.documents"
		" FROM (SELECT form, count(*) AS documents FROM (SELECT form FROM node UNION ALL SELECT form FROM past) o"
		" GROUP BY form) u"
		" JOIN form f ON f.id = u.form AND f.kind = 'fields'"
		" WHERE f.id < (SELECT max(l.id) FROM form l WHERE l.base = f.base AND l.kind = 'fields')", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && pass_goes_on(p); i++) {
		struct old_form o = { p, atoi(PQgetvalue(r, i, BASE)), strtoul(PQgetvalue(r, i, SHARE), NULL, 10) };

		if (o.share)
			rc = leave_form(p, PQgetvalue(r, i, FORM), &o, e);
	}
	PQclear(r);
	return rc;
}

/* --- what nobody uses --- */

/* Forms of bases that stay; of each the latest fields stay too, since those at hand are. */
#define UNUSED_FORMS "DELETE FROM form WHERE id IN (SELECT f.id FROM form f WHERE f.made < now() - " AGE \
	" AND (f.kind = 'patch' OR (f.kind = 'fields'" \
	" AND f.id < (SELECT max(l.id) FROM form l WHERE l.base = f.base AND l.kind = 'fields')))" \
	" AND NOT EXISTS (SELECT 1 FROM node n WHERE n.form = f.id) AND NOT EXISTS (SELECT 1 FROM past o WHERE o.form = f.id)" \
	" ORDER BY f.id LIMIT " DELETED_AT_ONCE ") RETURNING base"
#define UNUSED_BASES "DELETE FROM base WHERE id IN (SELECT b.id FROM base b WHERE b.made < now() - " AGE \
	" AND NOT EXISTS (SELECT 1 FROM class c WHERE c.golden = b.id) AND NOT EXISTS (SELECT 1 FROM form f WHERE f.base = b.id AND" \
	" (f.made >= now() - " AGE " OR EXISTS (SELECT 1 FROM node n WHERE n.form = f.id)" \
	" OR EXISTS (SELECT 1 FROM past o WHERE o.form = f.id)))" \
	" ORDER BY b.id LIMIT " DELETED_AT_ONCE ") RETURNING id"

/* An export that is committed meanwhile wins by its foreign key: then all of them stay until the next pass. */
static int delete_unused(struct pass *p, const char *sql, bool bases, struct err *e)
{
	int rows;

	do {
		PGresult *r = db_query(p->db, e, sql, 0, NULL);

		if (!r)
			return strcmp(db_state(p->db), "23503") ? -1 : 0;
		rows = PQntuples(r);
		for (int i = 0; bases && i < rows; i++) {
			shelf_drop(bases_shelf(p->bases), atoi(PQgetvalue(r, i, 0)));
			log_info("upkeep: base %s is no more: no node is like it", PQgetvalue(r, i, 0));
		}
		PQclear(r);
	} while (rows && pass_rest(p));
	return 0;
}

int rebase_unused(struct pass *p, struct err *e)
{
	return delete_unused(p, UNUSED_FORMS, false, e) || delete_unused(p, UNUSED_BASES, true, e) ? -1 : 0;
}

int rebase_refresh(struct pass *p, struct err *e)
{
	char highest[16];
	PGresult *r;

	if (bases_refresh(p->bases, p->db, e))
		return -1;
	snprintf(highest, sizeof(highest), "%d", *p->highest_base);
	r = db_query(p->db, e, "SELECT id, EXISTS (SELECT 1 FROM base b WHERE b.id = every.id)"
		     " FROM generate_series(1, greatest($1::int, (SELECT max(id) FROM base))) AS every(id) ORDER BY id",
		     1, &DB_TEXT(highest));
	for (int i = 0; r && i < PQntuples(r); i++) {
		*p->highest_base = atoi(PQgetvalue(r, i, 0));
		if (*PQgetvalue(r, i, 1) == 'f')
			shelf_drop(bases_shelf(p->bases), *p->highest_base);
	}
	PQclear(r);
	return r ? 0 : -1;
}
