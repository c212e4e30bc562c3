/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rebase.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "drift.h"
#include "moves.h"

/*
 * Who votes: nodes that drift, and never were anything else. Of what lies longer behind than KeepHistory can be (settings.c) nobody
 * knows any more. All other nodes of the class are against it.
 */
#define ENOUGH "4"
#define MANY_TIMES "2"
#define REMEMBERED "interval '1 day'"
/* An export may be committed so long after it was compared; UpkeepInterval later every topiaryd has looked again. */
#define UNDERWAY "interval '1 minute'"
#define INTERVALS "2"

/* --- the vote --- */

#define STANDING " JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base"
#define ELECT "WITH voter AS (SELECT b.class, f.base, f.kind FROM drift d JOIN node n ON n.name = d.node" STANDING \
	" WHERE n.since > now() - " REMEMBERED " AND NOT EXISTS (SELECT 1 FROM past o WHERE o.node = n.name))," \
	" won AS (SELECT class, base, count(*) AS votes FROM voter WHERE kind <> 'patch' GROUP BY class, base" \
	" HAVING count(*) >= " ENOUGH ")" \
	" SELECT DISTINCT ON (c.id) c.id, c.golden, w.base, w.votes FROM won w JOIN class c ON c.id = w.class" \
	" WHERE c.accepted_from IS NULL AND w.base <> c.golden AND c.retell IS DISTINCT FROM '-infinity'" \
	" AND w.votes > " MANY_TIMES " * ((SELECT count(*) FROM node n" STANDING " WHERE b.class = c.id)" \
	" - (SELECT count(*) FROM voter v WHERE v.class = c.id))" \
	" ORDER BY c.id, w.votes DESC, w.base"

/* The base's row is held: somebody may accept it this moment, which takes it out of the class. */
#define CROWN "WITH held AS (SELECT id FROM base WHERE id = $3 AND class = $1 FOR NO KEY UPDATE)," \
	" crowned AS (UPDATE class c SET golden = h.id, retell = '-infinity' FROM held h" \
	" WHERE c.id = $1 AND c.golden = $2 RETURNING c.golden)" \
	" UPDATE base b SET drift = NULL FROM crowned c WHERE b.id = c.golden RETURNING b.id"

static int elect(struct pass *p, struct err *e)
{
	enum { CLASS, GOLDEN, BASE, VOTES };
	PGresult *r = db_query(p->db, e, ELECT, 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && pass_goes_on(p); i++) {
		struct db_value v[] = { DB_TEXT(PQgetvalue(r, i, CLASS)), DB_TEXT(PQgetvalue(r, i, GOLDEN)),
					DB_TEXT(PQgetvalue(r, i, BASE)) };
		char base[DB_KEY];
		int crowned = db_key(p->db, base, e, CROWN, 3, v);

		if (crowned > 0)
			log_info("upkeep: class c%s is expected to be what %s of its nodes are: base %s", PQgetvalue(r, i, CLASS),
				 PQgetvalue(r, i, VOTES), base);
		rc = crowned < 0 ? -1 : 0;
	}
	PQclear(r);
	return rc;
}

/* --- telling anew --- */

struct telling {
	struct pass *pass;
	const char *class, *since;	/* the class, and of which documents */
	int golden;
	bool shown;			/* other topiaryd were made to look at the bases */
	bool whole;			/* every node was in hand */
	unsigned long skipped;		/* nodes that somebody held */
};

static struct comparer comparer(const struct pass *p)
{
	return (struct comparer){ p->bases, p->db, p->parser };
}

static int base_compare(const struct telling *t, int base, const char *node, struct drift *out, struct err *e)
{
	struct comparer with = comparer(t->pass);
	const struct book *book;
	struct buf xml;
	int rc;

	if (base == t->golden)
		return 0;
	if (!(book = bases_take(with.bases, with.db, base, e)))
		return -1;
	xml = (struct buf){ .data = book->text, .len = book->len };
	rc = drift_from_base(&with, t->golden, node, &xml, out, e);
	shelf_put(bases_shelf(with.bases), book);
	return rc;
}

static int tell_base(const struct telling *t, const char *base, const char *node, struct err *e)
{
	struct drift drift = {0};
	char changed[DB_KEY];
	int rc = base_compare(t, atoi(base), node, &drift, e);

	if (rc == 0)
		rc = db_key(t->pass->db, changed, e, "UPDATE base SET drift = $2::jsonb WHERE id = $1 AND class = $3"
			    " AND drift IS DISTINCT FROM $2::jsonb RETURNING id", 3,
			    (struct db_value[]){ DB_TEXT(base), DB_TEXT(drift.json), DB_TEXT(t->class) });
	drift_free(&drift);
	if (rc < 0)
		return -1;
	return rc || !t->shown ? bases_show_again(t->pass->bases, t->pass->db, atoi(base), e) : 0;
}

static int tell_bases(struct telling *t, struct err *e)
{
	PGresult *r = db_query(t->pass->db, e, "SELECT id, node FROM base WHERE class = $1 ORDER BY id", 1, &DB_TEXT(t->class));
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && pass_rest(t->pass); i++)
		rc = tell_base(t, PQgetvalue(r, i, 0), PQgetvalue(r, i, 1), e);
	PQclear(r);
	return rc;
}

enum { NODE, SHA256, SEVERITY, CHANGES, COLUMNS };

/* Nodes of one form, and what is told of them. */
struct told {
	struct telling *telling;
	int base;
	bool patch;
	struct buf column[COLUMNS];
};

static int fields_drift(const struct told *o, const struct buf *xml, struct drift *out, struct err *e)
{
	struct bases *b = o->telling->pass->bases;
	const struct book *book = bases_take(b, o->telling->pass->db, o->base, e);
	int rc = book ? drift_of_fields(book, xml, out, e) : -1;

	if (book)
		shelf_put(bases_shelf(b), book);
	return rc;
}

static int note_node(struct moves *m, const struct held *h, struct err *e)
{
	struct told *o = m->user;
	struct comparer with = comparer(o->telling->pass);
	struct drift drift;

	if (o->patch ? drift_from_base(&with, o->telling->golden, h->node, &h->xml, &drift, e) : fields_drift(o, &h->xml, &drift, e))
		return -1;
	db_array_text(&o->column[NODE], h->node);
	db_array_text(&o->column[SHA256], h->sha256);
	db_array_text(&o->column[SEVERITY], drift.severity);
	db_array_text(&o->column[CHANGES], drift.json);
	drift_free(&drift);
	return 0;
}

/* Only rows that say something else are written, and only of nodes that nobody holds: those skipped are counted. */
#define TELL "WITH wrong AS (SELECT u.* FROM unnest($2::text[], $3::text[], $4::text[], $5::jsonb[])" \
	" AS u(name, sha256, severity, changes)" \
	" JOIN node n ON n.name = u.name AND n.sha256 = decode(u.sha256, 'hex') AND n.form = $1::int" \
	" LEFT JOIN drift d ON d.node = n.name WHERE d.changes IS DISTINCT FROM u.changes)," \
	" held AS (SELECT w.name, w.severity, w.changes FROM wrong w JOIN node n ON n.name = w.name" \
	" AND n.sha256 = decode(w.sha256, 'hex') AND n.form = $1::int FOR NO KEY UPDATE OF n SKIP LOCKED)," \
	" mended AS (DELETE FROM drift d USING held h WHERE d.node = h.name AND h.changes IS NULL)," \
	" drifts AS (INSERT INTO drift (node, severity, changes) SELECT name, severity, changes FROM held WHERE changes IS NOT NULL" \
	" ON CONFLICT (node) DO UPDATE SET severity = excluded.severity, changes = excluded.changes, told = false, tries = 0," \
	" since = clock_timestamp())" \
	" SELECT (SELECT count(*) FROM wrong) - (SELECT count(*) FROM held)"

static void told_reset(struct told *o)
{
	for (int c = 0; c < COLUMNS; c++)
		db_array(&o->column[c]);
}

static int tell_noted(struct moves *m, struct err *e)
{
	struct told *o = m->user;
	struct db_value v[COLUMNS + 1] = { DB_TEXT(m->from) };
	bool failed = false;
	PGresult *r;

	for (int c = 0; c < COLUMNS; c++) {
		db_array_end(&o->column[c]);
		failed |= o->column[c].failed;
		v[1 + c] = DB_TEXT(o->column[c].data);
	}
	r = failed ? NULL : db_query(o->telling->pass->db, e, TELL, COLUMNS + 1, v);
	if (r)
		o->telling->skipped += strtoul(PQgetvalue(r, 0, 0), NULL, 10);
	PQclear(r);
	told_reset(o);
	return failed ? err_set(e, "out of memory") : r ? 0 : -1;
}

static int tell_form(struct telling *t, const char *form, int base, bool patch, struct err *e)
{
	struct told o = { .telling = t, .base = base, .patch = patch };
	struct moves m = { .who = RECENT, .from = form, .time = t->since, .each = note_node, .after = tell_noted, .user = &o };
	int rc;

	told_reset(&o);
	rc = moves_each(t->pass, &m, e);
	for (int c = 0; c < COLUMNS; c++)
		buf_free(&o.column[c]);
	t->whole = t->whole && m.whole;
	return rc;
}

/* The golden base's own come first: who asks to accept one of them is to hear that it does not drift. A bad document stops no other. */
static int tell_nodes(struct telling *t, struct err *e)
{
	char golden[16];
	PGresult *r;
	int rc;

	snprintf(golden, sizeof(golden), "%d", t->golden);
	r = db_query(t->pass->db, e, "SELECT f.id, f.base, f.kind = 'patch' FROM form f JOIN base b ON b.id = f.base"
		     " WHERE b.class = $1 AND f.id IN (SELECT form FROM node) ORDER BY f.base = $2 DESC, f.id", 2,
		     (struct db_value[]){ DB_TEXT(t->class), DB_TEXT(golden) });
	rc = r ? 0 : -1;
	t->whole = r && pass_goes_on(t->pass);
	for (int i = 0; r && t->whole && i < PQntuples(r); i++)
		if (tell_form(t, PQgetvalue(r, i, 0), atoi(PQgetvalue(r, i, 1)), *PQgetvalue(r, i, 2) == 't', rc ? NULL : e))
			rc = -1;
	PQclear(r);
	return rc;
}

/* What was under way when the golden base changed comes later, and is told anew as long as some may come. */
static int note_whole(const struct telling *t, const char *begun, struct err *e)
{
	char interval[16];

	snprintf(interval, sizeof(interval), "%u", t->pass->settings->upkeep_interval);
	return db_do(t->pass->db, e, "UPDATE class SET retell = CASE WHEN retell = '-infinity' THEN $3::timestamptz - " UNDERWAY
		     " WHEN retell > $3::timestamptz - " UNDERWAY " - " INTERVALS " * make_interval(secs => $4::int) THEN retell END"
		     " WHERE id = $1 AND retell = $2", 4,
		     (struct db_value[]){ DB_TEXT(t->class), DB_TEXT(t->since), DB_TEXT(begun), DB_TEXT(interval) });
}

static int tell_class(struct telling *t, const char *begun, struct err *e)
{
	int rc = tell_bases(t, e) ? -1 : tell_nodes(t, e);

	if (t->skipped)
		t->pass->unfinished = true;
	if (t->whole && !t->skipped && note_whole(t, begun, rc ? NULL : e))
		rc = -1;
	return rc;
}

static int tell_classes(struct pass *p, struct err *e)
{
	enum { CLASS, GOLDEN, SINCE, SHOWN, BEGUN };
	PGresult *r = db_query(p->db, e, "SELECT id, golden, retell, retell > '-infinity', now() FROM class WHERE retell IS NOT NULL"
			       " ORDER BY id", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; r && i < PQntuples(r) && pass_goes_on(p); i++) {
		struct telling t = { .pass = p, .class = PQgetvalue(r, i, CLASS), .since = PQgetvalue(r, i, SINCE),
				     .golden = atoi(PQgetvalue(r, i, GOLDEN)), .shown = *PQgetvalue(r, i, SHOWN) == 't' };

		if (tell_class(&t, PQgetvalue(r, i, BEGUN), rc ? NULL : e))
			rc = -1;
	}
	PQclear(r);
	return rc;
}

int rebase_golden(struct pass *p, struct err *e)
{
	return elect(p, e) || tell_classes(p, e) ? -1 : 0;
}
