/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include "base/log.h"
#include "ingest/drift.h"
#include "reencode.h"

/*
 * Notes
 *
 * A step of upkeep: its thread alone. Rows of nodes that others have locked are skipped, and the class is compared
 * again soon.
 */

/*
 * Voters: hosts of drifting nodes that never exported anything else. A host that exports under several names has one
 * vote; where no address is known (peer_host of http/peer.h) each name has one. The age is limited since KeepHistory
 * may have deleted what is older (settings.c). All other hosts of the class vote against.
 */
#define VOTES_MIN "4"
#define MAJORITY "2"
#define VOTE_AGE "interval '1 day'"
/*
 * An export may be committed this long after it was compared; every topiaryd has reloaded the bases UpkeepInterval
 * later.
 */
#define UNDERWAY "interval '1 minute'"
#define INTERVALS "2"

/* --- the vote --- */

#define STANDING " JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base"
#define HOST "coalesce(host(n.peer), n.name)"
#define ELECT "WITH voter AS (SELECT b.class, f.base, f.kind, n.name, " HOST " AS host" \
	" FROM drift d JOIN node n ON n.name = d.node" STANDING \
	" WHERE n.since > now() - " VOTE_AGE " AND NOT EXISTS (SELECT 1 FROM past o WHERE o.node = n.name))," \
	" won AS (SELECT class, base, count(DISTINCT host) AS votes FROM voter WHERE kind <> 'patch'" \
	" GROUP BY class, base HAVING count(DISTINCT host) >= " VOTES_MIN ")" \
	" SELECT DISTINCT ON (c.id) c.id, c.baseline, w.base, w.votes FROM won w JOIN class c ON c.id = w.class" \
	" WHERE c.accepted_from IS NULL AND w.base <> c.baseline AND c.recompare_since IS DISTINCT FROM '-infinity'" \
	" AND w.votes > " MAJORITY " * (SELECT count(DISTINCT " HOST ") FROM node n" STANDING " WHERE b.class = c.id" \
	" AND NOT EXISTS (SELECT FROM voter v WHERE v.class = c.id AND v.name = n.name))" \
	" ORDER BY c.id, w.votes DESC, w.base"

/* Locks the base's row: it may be being accepted, which moves it to another class. */
#define SET_BASELINE "WITH held AS (SELECT id FROM base WHERE id = $3 AND class = $1 FOR NO KEY UPDATE)," \
	" crowned AS (UPDATE class c SET baseline = h.id, recompare_since = '-infinity' FROM held h" \
	" WHERE c.id = $1 AND c.baseline = $2 RETURNING c.baseline)" \
	" UPDATE base b SET drift = NULL FROM crowned c WHERE b.id = c.baseline RETURNING b.id"

static int elect_baselines(struct upkeep_run *p, struct err *e)
{
	enum { CLASS, BASELINE, BASE, VOTES };
	PGresult *r = db_query(p->db, e, ELECT, 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct db_value v[] = { DB_TEXT(PQgetvalue(r, i, CLASS)), DB_TEXT(PQgetvalue(r, i, BASELINE)),
					DB_TEXT(PQgetvalue(r, i, BASE)) };
		char base[DB_KEY];
		int elected = db_query_key(p->db, base, e, SET_BASELINE, 3, v);

		if (elected > 0)
			log_info("upkeep: class c%s: new baseline by the vote of %s nodes: base %s",
				 PQgetvalue(r, i, CLASS), PQgetvalue(r, i, VOTES), base);
		rc = elected < 0 ? -1 : 0;
	}
	PQclear(r);
	return rc;
}

/* --- drift against the new baseline --- */

struct reevaluation {
	struct upkeep_run *pass;
	const char *class, *since;	/* the class, and since when its documents count */
	int baseline;
	bool invalidated;			/* other topiaryd were made to reload the bases */
	bool whole;			/* every node was compared */
	unsigned long skipped;		/* nodes whose rows were locked */
};

static struct drift_comparer comparer_of(const struct upkeep_run *p)
{
	return (struct drift_comparer){ .bases = p->bases, .db = p->db, .parser = p->parser };
}

static int reevaluate_base(const struct reevaluation *t, int base, const char *node, struct err *e)
{
	struct drift_comparer with = comparer_of(t->pass);
	const struct cached_base *cached = NULL;
	struct drift drift = {0};
	char changed[DB_KEY];
	int rc = 0;

	if (base != t->baseline) {
		if (!(cached = bases_acquire(with.bases, with.db, base, e)))
			return -1;
		rc = drift_from_base(&with, t->baseline, node,
				     &(struct buf){ .data = cached->text, .len = cached->len }, &drift, e);
		bases_release(with.bases, cached);
	}
	if (rc == 0)
		rc = db_query_key(with.db, changed, e, "UPDATE base SET drift = $2::jsonb WHERE id = $1 AND class = $3"
				  " AND drift IS DISTINCT FROM $2::jsonb RETURNING id", 3,
				  (struct db_value[]){ DB_NUMBER(base), DB_TEXT(drift.json), DB_TEXT(t->class) });
	drift_free(&drift);
	if (rc < 0)
		return -1;
	return rc || !t->invalidated ? bases_invalidate(with.bases, with.db, base, e) : 0;
}

static int reevaluate_bases(struct reevaluation *t, struct err *e)
{
	PGresult *r = db_query(t->pass->db, e, "SELECT id, node FROM base WHERE class = $1 ORDER BY id", 1,
			       &DB_TEXT(t->class));
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_pause(t->pass); i++)
		rc = reevaluate_base(t, atoi(PQgetvalue(r, i, 0)), PQgetvalue(r, i, 1), e);
	PQclear(r);
	return rc;
}

enum { NODE, SHA256, SEVERITY, CHANGES, COLUMNS };

/* Nodes of one layout, and their drift. */
struct drift_batch {
	struct reevaluation *reevaluation;
	int base;
	bool patch;
	struct buf column[COLUMNS];
};

static int add_node(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	struct drift_batch *o = m->user;
	struct drift_comparer with = comparer_of(o->reevaluation->pass);
	const struct cached_base *cached;
	struct drift drift;
	int rc = -1;

	if (o->patch) {
		rc = drift_from_base(&with, o->reevaluation->baseline, h->node, &h->xml, &drift, e);
	} else if ((cached = bases_acquire(with.bases, with.db, o->base, e))) {
		rc = drift_of_fields(cached, &h->xml, &drift, e);
		bases_release(with.bases, cached);
	}
	if (rc)
		return -1;
	db_array_text(&o->column[NODE], h->node);
	db_array_text(&o->column[SHA256], h->sha256);
	db_array_text(&o->column[SEVERITY], drift.severity);
	db_array_text(&o->column[CHANGES], drift.json);
	drift_free(&drift);
	return 0;
}

/* Only rows that change are written, and only of nodes not locked by others: those skipped are counted. */
#define STORE_DRIFT "WITH wrong AS (SELECT u.* FROM unnest($1::text[], $2::text[], $3::text[], $4::jsonb[])" \
	" AS u(name, sha256, severity, changes)" \
	" JOIN node n ON n.name = u.name AND n.sha256 = decode(u.sha256, 'hex') AND n.layout = $5::int" \
	" LEFT JOIN drift d ON d.node = n.name WHERE d.changes IS DISTINCT FROM u.changes)," \
	" held AS (SELECT w.name, w.severity, w.changes FROM wrong w JOIN node n ON n.name = w.name" \
	" AND n.sha256 = decode(w.sha256, 'hex') AND n.layout = $5::int FOR NO KEY UPDATE OF n SKIP LOCKED)," \
	" mended AS (DELETE FROM drift d USING held h WHERE d.node = h.name AND h.changes IS NULL)," \
	" drifts AS (INSERT INTO drift (node, severity, changes) SELECT name, severity, changes FROM held WHERE" \
	" changes IS NOT NULL" \
	" ON CONFLICT (node) DO UPDATE SET severity = excluded.severity, changes = excluded.changes, reported =" \
	" false, tries = 0, since = clock_timestamp())" \
	" SELECT (SELECT count(*) FROM wrong) - (SELECT count(*) FROM held)"

static int store_batch(struct reencoding *m, struct err *e)
{
	struct drift_batch *o = m->user;
	struct reevaluation *t = o->reevaluation;
	PGresult *r = db_query_arrays(t->pass->db, false, STORE_DRIFT, COLUMNS, o->column, 1, &DB_TEXT(m->from), e);

	if (r)
		t->skipped += strtoul(PQgetvalue(r, 0, 0), NULL, 10);
	PQclear(r);
	return r ? 0 : -1;
}

/*
 * Nodes of the baseline first, since somebody may be about to accept one of them. An unreadable document does not
 * stop the others.
 */
static int reevaluate_nodes(struct reevaluation *t, struct err *e)
{
	PGresult *r = db_query(t->pass->db, e, "SELECT f.id, f.base, f.kind = 'patch' FROM layout f JOIN base b ON b.id"
			       " = f.base WHERE b.class = $1 AND f.id IN (SELECT layout FROM node) ORDER BY f.base = $2"
			       " DESC, f.id", 2, (struct db_value[]){ DB_TEXT(t->class), DB_NUMBER(t->baseline) });
	int rc = r ? 0 : -1;

	t->whole = r && upkeep_continues(t->pass);
	for (int i = 0; r && t->whole && i < PQntuples(r); i++) {
		struct drift_batch o = { .reevaluation = t, .base = atoi(PQgetvalue(r, i, 1)),
					 .patch = *PQgetvalue(r, i, 2) == 't' };
		struct reencoding m = { .scope = SCOPE_RECENT, .from = PQgetvalue(r, i, 0), .time = t->since,
					.each = add_node, .after = store_batch, .user = &o };

		if (reencode_each(t->pass, &m, rc ? NULL : e))
			rc = -1;
		for (int c = 0; c < COLUMNS; c++)
			buf_free(&o.column[c]);
		t->whole = m.whole;
	}
	PQclear(r);
	return rc;
}

/*
 * Exports in progress when the baseline changed are committed later, and are compared again as long as such may
 * come.
 */
#define COMPLETE "UPDATE class SET recompare_since = CASE WHEN recompare_since = '-infinity' THEN $3::timestamptz - " \
	UNDERWAY " WHEN recompare_since > $3::timestamptz - " UNDERWAY " - " INTERVALS " * make_interval(secs =>" \
	" $4::int) THEN recompare_since END WHERE id = $1 AND recompare_since = $2"

static int reevaluate_classes(struct upkeep_run *p, struct err *e)
{
	enum { CLASS, BASELINE, SINCE, SHOWN, BEGUN };
	PGresult *r = db_query(p->db, e, "SELECT id, baseline, recompare_since, recompare_since > '-infinity', now()"
					 " FROM class WHERE recompare_since IS NOT NULL ORDER BY id", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; r && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct reevaluation t = { .pass = p, .class = PQgetvalue(r, i, CLASS), .since = PQgetvalue(r, i, SINCE),
				     .baseline = atoi(PQgetvalue(r, i, BASELINE)),
					     .invalidated = *PQgetvalue(r, i, SHOWN) == 't' };

		if (reevaluate_bases(&t, rc ? NULL : e) || reevaluate_nodes(&t, rc ? NULL : e))
			rc = -1;
		p->unfinished |= t.skipped;
		if (t.whole && !t.skipped &&
		    db_execute(p->db, rc ? NULL : e, COMPLETE, 4, (struct db_value[]){
				DB_TEXT(t.class), DB_TEXT(t.since), DB_TEXT(PQgetvalue(r, i, BEGUN)),
				DB_NUMBER(p->settings->upkeep_interval) }))
			rc = -1;
	}
	PQclear(r);
	return rc;
}

int baseline_vote_run(struct upkeep_run *p, struct err *e)
{
	return elect_baselines(p, e) || reevaluate_classes(p, e) ? -1 : 0;
}
