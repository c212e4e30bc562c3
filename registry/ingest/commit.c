/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "commit.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"
#include "store/facts.h"
#include "gate.h"

#define BATCH 256
/* between the starts of two batches: under load batches grow, and a single export does not wait */
#define BATCH_INTERVAL_MS 20
#define SECONDS 15	/* for a batch, whatever happens: its nodes wait, and those of the next batch too */
#define TRIES 3		/* of a batch that met a node being inserted by another topiaryd */

/*
 * Notes
 *
 * The threads share the queue and the counts, under the lock of `background`, and nothing else. A request in the queue
 * belongs to the committer until it calls done, which may free it. A batch belongs to its thread: it has one export of
 * a node, sorted by name, and so are the rows of a statement, so that two threads lock rows in the same order. No lock
 * is held while PostgreSQL works.
 */

/* What is done for an export, and what else statements select exports by. */
enum {
	TOUCHED = 1, REPLACED = 2, INSERTED = 4,	/* its action: one of these, or none */
	REPAIRED = 8,		/* same document, but what is stored of it cannot be rebuilt */
	ANY = 16, WITH_DOCUMENT = 32, UNREADABLE = 64, DRIFTED = 128, NO_DRIFT = 256,
};
#define UPDATED (REPLACED | REPAIRED)
#define STORED (UPDATED | INSERTED)

struct committer {
	struct db_pool *pool;
	const struct settings *settings;
	struct bases *bases;
	struct verified_cache *verified;
	struct background background;
	struct commit_request *first, **last;
	double begun;		/* start of the latest batch, in clock_now */
	struct commit_counts counts;
};

/* --- one transaction --- */

struct batch {
	const struct committer *committer;
	struct commit_request *exports[BATCH];
	size_t n;
};

ORDER(by_name, struct commit_request *const, strcmp((*x)->claim->node, (*y)->claim->node))

/* Columns of arrays with one element an export, as values of one statement. */
enum column { NAME, BOOT, SEQ, PEER, SHA256, LAYOUT, MARK, XML_BYTES, DIFF, SEVERITY, CHANGES, REASON, COLUMN_COUNT };
static const enum column all_columns[] = { NAME, BOOT, SEQ, PEER, SHA256, LAYOUT, MARK, XML_BYTES, DIFF };

static const enum column quota_columns[] = { NAME, PEER };

static bool is_in(const struct commit_request *d, unsigned set)
{
	unsigned is = ANY | d->action;

	if (d->encoded)
		is |= WITH_DOCUMENT;
	if (d->unreadable && d->action != REPAIRED)
		is |= UNREADABLE;
	if (d->action & STORED && d->encoded->drift.json)
		is |= DRIFTED;
	else if (d->action & UPDATED)
		is |= NO_DRIFT;
	return is & set;
}

static void add_values(struct buf arrays[], const enum column *columns, unsigned n, const struct commit_request *d)
{
	const struct encoded *x = d->encoded;
	char sha256[HASH_HEX + 2];
	const char *const text[COLUMN_COUNT] = {
		[NAME] = d->claim->node, [BOOT] = d->claim->boot_id, [SEQ] = DB_NUMBER(d->claim->seq).data,
		[PEER] = d->host, [SHA256] = sha256, [LAYOUT] = x ? x->layout.id : NULL,
		[MARK] = x ? x->layout.mark : NULL, [XML_BYTES] = DB_NUMBER(d->claim->length).data,
		[SEVERITY] = x ? x->drift.severity : NULL, [CHANGES] = x ? x->drift.json : NULL,
		[REASON] = d->err.text,
	};

	snprintf(sha256, sizeof(sha256), "\\x%s", d->claim->sha256);
	for (unsigned c = 0; c < n; c++)
		if (columns[c] == DIFF)
			db_array_bytes(&arrays[c], x->diff.data, x->diff.len);
		else
			db_array_text(&arrays[c], text[columns[c]]);
}

/*
 * Run sql with the first n columns of the exports in the set; not run when there are none. The number of these exports,
 * with the result in out unless it is NULL; -1.
 */
static int query_exports(struct db *db, const struct batch *t, unsigned set, const char *sql,
			 const enum column *columns, unsigned n, PGresult **out, struct err *e)
{
	struct buf arrays[COLUMN_COUNT] = {0};
	PGresult *r = NULL;
	int exports = 0;

	for (size_t i = 0; i < t->n; i++)
		if (is_in(t->exports[i], set)) {
			add_values(arrays, columns, n, t->exports[i]);
			exports++;
		}
	if (exports && !(r = db_query_arrays(db, true, sql, n, arrays, 0, NULL, e)))
		exports = -1;
	if (out)
		*out = r;
	else
		PQclear(r);
	return exports;
}

/* The same, for a statement without a result. 0 or -1. */
static int execute_exports(struct db *db, const struct batch *t, unsigned set, const char *sql,
			   const enum column *columns, unsigned n, struct err *e)
{
	return query_exports(db, t, set, sql, columns, n, NULL, e) < 0 ? -1 : 0;
}

/* --- the action for each --- */

enum { R_NAME, R_SEQ, R_BOOT, R_SHA256, R_SHAPE, R_CLASS, R_XML_BYTES, R_LAYOUT, R_MARK, R_DIFF, R_REASON, R_BASE };
#define HOLD "SELECT 1 FROM node WHERE name = ANY($1::text[]) ORDER BY name COLLATE \"C\" FOR UPDATE"
/*
 * A statement of its own: one that waits for a row which upkeep moves to a layout newer than the statement's snapshot
 * would join nothing.
 */
#define HELD "SELECT n.name, n.seq, n.boot, encode(n.sha256, 'hex'), f.shape, b.class, n.xml_bytes," \
	" n.layout, f.mark, n.diff, u.reason, b.id" \
	" FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base" \
	" LEFT JOIN unreadable u ON u.node = n.name AND u.since = n.since" \
	" WHERE n.name = ANY($1::text[]) ORDER BY n.name COLLATE \"C\""

static void export_reject(struct commit_request *d, enum commit_result why)
{
	d->action = 0;
	d->result = why;
}

static void set_stored(struct commit_request *d, unsigned action, bool moved)
{
	d->action = action;
	d->receipt = (struct commit_receipt){ .stored = d->encoded->kind, .stored_bytes = d->encoded->stored_bytes,
				       .xml_bytes = d->claim->length, .moved = moved,
					       .drifted = d->encoded->drift.json };
	snprintf(d->receipt.shape, sizeof(d->receipt.shape), "%s", d->encoded->shape);
}

/* Can the stored document be rebuilt? */
static bool is_readable(struct db *db, const struct committer *c, struct commit_request *d, const PGresult *r, int row)
{
	struct document_row known = { .node = d->claim->node, .sha256 = PQgetvalue(r, row, R_SHA256),
				   .xml_bytes = strtoul(PQgetvalue(r, row, R_XML_BYTES), NULL, 10),
				   .base = atoi(PQgetvalue(r, row, R_BASE)) };

	layout_key_read(r, row, R_LAYOUT, &known.layout);
	if (!PQgetisnull(r, row, R_REASON))
		err_set(&d->err, "%s", PQgetvalue(r, row, R_REASON));
	else if (db_bytes(r, row, R_DIFF, &known.diff))
		err_set(&d->err, "out of memory");
	else
		d->unreadable = document_verify(c->verified, c->bases, db, &known, &d->err);
	d->unreadable |= !PQgetisnull(r, row, R_REASON);
	buf_free(&known.diff);
	return !d->unreadable;
}

static void decide_known(struct db *db, const struct committer *c, struct commit_request *d, const PGresult *r, int row)
{
	const char *shape = PQgetvalue(r, row, R_SHAPE);
	bool same = !strcmp(PQgetvalue(r, row, R_SHA256), d->claim->sha256);
	int class = atoi(PQgetvalue(r, row, R_CLASS));
	uint64_t last = strtoull(PQgetvalue(r, row, R_SEQ), NULL, 10);

	if (!strcmp(PQgetvalue(r, row, R_BOOT), d->claim->boot_id) && last >= d->claim->seq) {
		export_reject(d, COMMIT_STALE);
		d->receipt = (struct commit_receipt){ .last = last };
	} else if (is_readable(db, c, d, r, row) && same) {
		d->action = TOUCHED;
		d->receipt = (struct commit_receipt){ .stored = "known",
					       .xml_bytes = strtoul(PQgetvalue(r, row, R_XML_BYTES), NULL, 10) };
		snprintf(d->receipt.shape, sizeof(d->receipt.shape), "%s", shape);
	} else if (!d->encoded) {
		export_reject(d, COMMIT_ABSENT);
	} else if (d->unreadable && PQgetisnull(r, row, R_REASON)) {
		/* It was encoded in the class of a row that is now known to be unreadable. */
		export_reject(d, COMMIT_GONE);
	} else if (d->unreadable) {
		set_stored(d, same ? REPAIRED : REPLACED, true);
	} else if (d->encoded->class != class && d->encoded->accepted_from != class) {
		export_reject(d, COMMIT_CLASS);
		d->receipt = (struct commit_receipt){ .class = class };
	} else {
		set_stored(d, REPLACED, strcmp(shape, d->encoded->shape) != 0);
	}
}

/*
 * Locks the rows that may be replaced, so that exports of a node are serialized. Exports and rows are both sorted by
 * name.
 */
static int decide_all(struct db *db, struct batch *t, struct err *e)
{
	PGresult *r;
	int row = 0;

	if (execute_exports(db, t, WITH_DOCUMENT, HOLD, all_columns, 1, e) ||
	    query_exports(db, t, ANY, HELD, all_columns, 1, &r, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		struct commit_request *d = t->exports[i];

		d->result = COMMIT_OK;
		d->unreadable = false;
		if (row < PQntuples(r) && !strcmp(PQgetvalue(r, row, R_NAME), d->claim->node))
			decide_known(db, t->committer, d, r, row++);
		else if (d->encoded)
			set_stored(d, INSERTED, true);
		else
			export_reject(d, COMMIT_ABSENT);
	}
	PQclear(r);
	return 0;
}

static struct commit_request *find_export(const struct batch *t, const char *name)
{
	struct claim claim;
	struct commit_request wanted = { .claim = &claim }, *key = &wanted, *const *found;

	snprintf(claim.node, sizeof(claim.node), "%s", name);
	found = bsearch(&key, t->exports, t->n, sizeof(*t->exports), by_name);
	return found ? *found : NULL;
}

/* Limits the exports that replace a document. */
static int decide_quota(struct db *db, const struct batch *t, const struct settings *s, struct err *e)
{
	PGresult *r;

	if (query_exports(db, t, REPLACED, QUOTA_SQL, quota_columns, 2, &r, e) < 0)
		return -1;
	for (int row = 0; r && row < PQntuples(r); row++)
		if (gate_quota_spent(s, r, row))
			export_reject(find_export(t, PQgetvalue(r, row, 0)), COMMIT_QUOTA);
	PQclear(r);
	return 0;
}

/* --- statements --- */

/* Stores nothing whose layout the database does not have by key and mark. */
#define ROWS "unnest($1::text[], $2::uuid[], $3::bigint[], $4::inet[], $5::bytea[], $6::int[], $7::uuid[]," \
	" $8::int[], $9::bytea[])" \
	" AS u(name, boot, seq, peer, sha256, layout, mark, xml_bytes, diff) JOIN layout f ON " \
	LAYOUT_IS("u.layout", "u.mark")
/*
 * `seen` is updated once a boot, however often the agent asks. The rows are not locked before, since most exports are
 * known: the conditions hold for the row as it is when it is updated.
 */
#define TOUCH "UPDATE node n SET boot = u.boot, seq = u.seq, peer = u.peer," \
	" seen = CASE WHEN n.boot = u.boot THEN n.seen" \
	" ELSE greatest(0, ceil(extract(epoch FROM clock_timestamp() - n.since))) END" \
	" FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::inet[], $5::bytea[])" \
	" AS u(name, boot, seq, peer, sha256)" \
	" WHERE n.name = u.name AND n.sha256 = u.sha256 AND (n.boot <> u.boot OR n.seq < u.seq) RETURNING n.name"
/* clock_timestamp, since the start of the transaction may precede the one that it waited for. */
#define REPLACE "WITH u AS (SELECT c.t, u.* FROM clock_timestamp() AS c(t), " ROWS ")," \
	" old AS (INSERT INTO past (since, until, layout, xml_bytes, sha256, node, diff)" \
	" SELECT n.since, u.t, n.layout, n.xml_bytes, n.sha256, n.name, n.diff FROM node n JOIN u ON u.name = n.name)" \
	" UPDATE node n SET since = u.t, seen = 0, boot = u.boot, seq = u.seq, peer = u.peer, sha256 = u.sha256," \
	" layout = u.layout, xml_bytes = u.xml_bytes, diff = u.diff FROM u" \
	" WHERE n.name = u.name RETURNING n.name, n.diff"
#define INSERT "INSERT INTO node (since, seq, boot, peer, layout, xml_bytes, sha256, name, diff)" \
	" SELECT c.t, u.seq, u.boot, u.peer, u.layout, u.xml_bytes, u.sha256, u.name, u.diff FROM" \
	" clock_timestamp() AS c(t), " ROWS \
	" ON CONFLICT DO NOTHING RETURNING name, diff"
#define REPAIR "UPDATE node n SET seen = greatest(0, ceil(extract(epoch FROM clock_timestamp() - n.since)))," \
	" boot = u.boot, seq = u.seq, peer = u.peer, sha256 = u.sha256, layout = u.layout, xml_bytes = u.xml_bytes," \
	" diff = u.diff FROM " ROWS " WHERE n.name = u.name RETURNING n.name, n.diff"
#define NO_LONGER_UNREADABLE "DELETE FROM unreadable u USING node n WHERE n.name = ANY($1::text[])" \
	" AND u.node = n.name AND u.since = n.since"
#define NOTE_UNREADABLE "INSERT INTO unreadable (node, since, reason) SELECT n.name, n.since, u.reason" \
	" FROM unnest($1::text[], $2::text[]) AS u(name, reason) JOIN node n USING (name) ON CONFLICT DO NOTHING"
#define DELETE_DRIFT "DELETE FROM drift WHERE node = ANY($1::text[])"
#define DELETE_FACTS "DELETE FROM node_fact WHERE node = ANY($1::text[])"
#define DRIFT "INSERT INTO drift (node, severity, changes) SELECT * FROM unnest($1::text[], $2::text[], $3::jsonb[])" \
	" ON CONFLICT (node) DO UPDATE SET severity = excluded.severity, changes = excluded.changes," \
	" reported = drift.reported AND drift.changes = excluded.changes," \
	" since = CASE WHEN drift.changes = excluded.changes THEN drift.since ELSE clock_timestamp() END"

static const enum column drift_columns[] = { NAME, SEVERITY, CHANGES };
static const enum column unreadable_columns[] = { NAME, REASON };

/* Store those in the set: PostgreSQL must return every row, with the bytes that it was sent. */
static int store_exports(struct db *db, const struct batch *t, unsigned set, const char *sql, struct err *e)
{
	PGresult *r;
	int n = query_exports(db, t, set, sql, all_columns, sizeof(all_columns) / sizeof(all_columns[0]), &r, e);
	int rc = n < 0 ? -1 : n != (r ? PQntuples(r) : 0) ?
		err_set(e, "another topiaryd committed an export of the same node") : 0;

	for (int i = 0; i < n && rc == 0; i++) {
		const struct commit_request *d = find_export(t, PQgetvalue(r, i, 0));
		struct buf diff = {0};

		if (!d || db_bytes(r, i, 1, &diff))
			rc = err_set(e, "out of memory");
		else if (diff.len != d->encoded->diff.len ||
			 (diff.len && memcmp(diff.data, d->encoded->diff.data, diff.len)))
			rc = err_set(e, "%s: PostgreSQL returned different bytes than were sent", d->claim->node);
		buf_free(&diff);
	}
	PQclear(r);
	return rc;
}

static int touch_exports(struct db *db, const struct batch *t, struct err *e)
{
	PGresult *r;
	int n = query_exports(db, t, TOUCHED, TOUCH, all_columns, 5, &r, e);
	int rc = n < 0 ? -1 : n == (r ? PQntuples(r) : 0) ? 0 :
		err_set(e, "another export of the same node was committed meanwhile");

	PQclear(r);
	return rc;
}

static int store_facts(struct db *db, const struct batch *t, struct err *e)
{
	struct facts facts = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		if (is_in(t->exports[i], STORED) && t->exports[i]->encoded->facts)
			rc = facts_add(&facts, t->exports[i]->claim->node, t->exports[i]->encoded->facts, e);
	if (rc == 0)
		rc = facts_insert(db, &facts, FACTS_OF("node_fact", "node", "text"), e);
	facts_free(&facts);
	return rc;
}

/* A plan made while the table is small, and kept when it has grown, would compare all nodes with every name. */
#define BEGIN "BEGIN; SET LOCAL enable_seqscan = off"

static int commit_batch(struct db *db, struct batch *t, struct err *e)
{
	int rc = db_script(db, e, BEGIN) || decide_all(db, t, e) ||
		decide_quota(db, t, t->committer->settings, e) || touch_exports(db, t, e) ||
		execute_exports(db, t, UNREADABLE, NOTE_UNREADABLE, unreadable_columns, 2, e) ||
		store_exports(db, t, REPLACED, REPLACE, e) || store_exports(db, t, REPAIRED, REPAIR, e) ||
		store_exports(db, t, INSERTED, INSERT, e) ||
		execute_exports(db, t, REPAIRED, NO_LONGER_UNREADABLE, all_columns, 1, e) ||
		execute_exports(db, t, UPDATED, DELETE_FACTS, all_columns, 1, e) || store_facts(db, t, e) ||
		execute_exports(db, t, NO_DRIFT, DELETE_DRIFT, all_columns, 1, e) ||
		execute_exports(db, t, DRIFTED, DRIFT, drift_columns, 3, e) ? -1 : 0;

	if (db_end(db, rc, e))
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		const struct commit_request *d = t->exports[i];

		/* These were compared with the document when encoded, and with the bytes that PostgreSQL returned. */
		if (is_in(d, STORED))
			verified_cache_add(t->committer->verified,
					   &(struct document_row){ .node = d->claim->node, .sha256 = d->claim->sha256,
								   .layout = d->encoded->layout,
								   .diff = d->encoded->diff });
		if (is_in(d, UNREADABLE))
			log_warning("%s: the stored document cannot be rebuilt: %s; the node is asked to send it again",
				    d->claim->node, d->err.text);
	}
	return 0;
}

static void fail_all(struct batch *t, const struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		t->exports[i]->result = COMMIT_FAILED;
		t->exports[i]->err = *e;
	}
}

static void run_batch(struct committer *c, struct batch *t)
{
	struct err e;
	double begun = clock_now();
	struct db *db = db_acquire(c->pool, &e);
	int rc = db ? 0 : -1;

	qsort(t->exports, t->n, sizeof(*t->exports), by_name);
	if (db)
		db_limit_all(db, SECONDS);
	for (int i = 0; db && i < TRIES; i++)
		/* lock_not_available, query_canceled: a locked row would cost as much time again. */
		if ((rc = commit_batch(db, t, &e)) == 0 || !db_alive(db) || !strcmp(db_state(db), "55P03") ||
		    !strcmp(db_state(db), "57014"))
			break;
	if (rc && db && db_alive(db)) {
		/* One node's export must not fail others in its transaction: each is committed alone. */
		for (size_t i = 0; i < t->n; i++) {
			struct batch one = { .committer = t->committer, .exports = { t->exports[i] }, .n = 1 };
			const struct encoded *x = t->exports[i]->encoded;
			char key[DB_KEY];
			struct err why;

			if (!commit_batch(db, &one, &why))
				continue;
			fail_all(&one, &why);
			/* Does the database lack the layout by which it was encoded? */
			if (x && db_query_key(db, key, NULL, "SELECT 1 FROM layout f WHERE " LAYOUT_IS("$1", "$2"), 2,
					      (struct db_value[]){ DB_TEXT(x->layout.id),
								  DB_TEXT(x->layout.mark) }) == 0)
				t->exports[i]->result = COMMIT_GONE;
		}
	} else if (rc) {
		fail_all(t, &e);
	}
	log_debug("transaction with %zu exports: %s after %.1f ms", t->n, rc ? e.text : "committed",
		  1000 * (clock_now() - begun));
	db_release(db);
}

/* --- the queue --- */

/* Takes the waiting exports, one for each node; a second one of a node goes into the next batch. The lock is held. */
static void next_batch(struct committer *c, struct batch *t)
{
	struct commit_request **at = &c->first;

	t->n = 0;
	while (*at && t->n < BATCH) {
		struct commit_request *d = *at;
		size_t i = 0;

		while (i < t->n && strcmp(t->exports[i]->claim->node, d->claim->node))
			i++;
		if (i < t->n) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		t->exports[t->n++] = d;
	}
	if (!*at)
		c->last = at;
	assert(c->first ? !*c->last : c->last == &c->first);
}

static void *run_committer(void *user)
{
	struct committer *c = user;
	struct batch t = { .committer = c };
	double ms;

	pthread_mutex_lock(&c->background.lock);
	for (;;) {
		while (!c->first && !c->background.stop)
			pthread_cond_wait(&c->background.wake, &c->background.lock);
		if (!c->first)
			break;
		while ((ms = BATCH_INTERVAL_MS - 1000 * (clock_now() - c->begun)) > 0) {
			pthread_mutex_unlock(&c->background.lock);
			nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
			pthread_mutex_lock(&c->background.lock);
		}
		c->begun = clock_now();
		next_batch(c, &t);
		if (!t.n)
			continue;
		pthread_mutex_unlock(&c->background.lock);
		run_batch(c, &t);
		pthread_mutex_lock(&c->background.lock);
		c->counts.batches++;
		for (size_t i = 0; i < t.n; i++) {
			const struct commit_request *d = t.exports[i];

			c->counts.known += d->result == COMMIT_OK && d->action == TOUCHED;
			c->counts.kept += d->result == COMMIT_OK && d->action != TOUCHED;
			c->counts.stale += d->result == COMMIT_STALE;
			c->counts.failed += d->result == COMMIT_FAILED;
		}
		pthread_mutex_unlock(&c->background.lock);
		for (size_t i = 0; i < t.n; i++)
			t.exports[i]->done(t.exports[i]);
		pthread_mutex_lock(&c->background.lock);
	}
	pthread_mutex_unlock(&c->background.lock);
	return NULL;
}

void commit_export(struct committer *c, struct commit_request *d)
{
	assert(d->claim && d->done);
	d->next = NULL;
	pthread_mutex_lock(&c->background.lock);
	*c->last = d;
	c->last = &d->next;
	pthread_mutex_unlock(&c->background.lock);
	/* Behind the lock, which the thread that wakes would wait for. */
	pthread_cond_signal(&c->background.wake);
}

struct committer *committer_start(struct db_pool *pool, const struct settings *settings, struct bases *b,
				  struct verified_cache *s, unsigned threads, struct err *e)
{
	struct committer *c = calloc(1, sizeof(*c));

	if (!c)
		return err_null(e, "out of memory");
	c->pool = pool;
	c->settings = settings;
	c->bases = b;
	c->verified = s;
	c->last = &c->first;
	for (unsigned i = 0; i < threads; i++)
		if (background_start(&c->background, run_committer, c, "commits", e)) {
			committer_stop(c);
			return NULL;
		}
	return c;
}

void committer_stop(struct committer *c)
{
	if (c)
		background_stop(&c->background);
	free(c);
}

void committer_counts(struct committer *c, struct commit_counts *out)
{
	pthread_mutex_lock(&c->background.lock);
	*out = c->counts;
	pthread_mutex_unlock(&c->background.lock);
}
