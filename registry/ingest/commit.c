/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "commit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/facts.h"
#include "gate.h"

#define BATCH 256
/* between the starts of two batches: under load batches grow, and a single export does not wait */
#define BATCH_INTERVAL_MS 20
#define SECONDS 15	/* for a batch, whatever happens: its nodes wait, and those of the next batch too */
#define TRIES 3		/* of a batch that met a node being inserted by another topiaryd */

enum export_action {
	ACTION_NONE,
	ACTION_TOUCH,
	ACTION_REPLACE,
	ACTION_INSERT,
	ACTION_REPAIR,	/* same document, but what is stored of it cannot be rebuilt */
};

struct committer {
	struct db_pool *pool;
	const struct settings *settings;
	struct bases *bases;
	struct verified_cache *verified;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct commit_request *first, **last;
	bool stop;
	double begun;		/* start of the latest batch, in clock_now */
	struct commit_counts counts;
	unsigned nthreads;
	pthread_t threads[];
};

/* --- one transaction --- */

struct batch {
	const struct committer *committer;
	struct commit_request *exports[BATCH];
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct commit_request *const *) a)->claim->node,
		      (*(struct commit_request *const *) b)->claim->node);
}

/* Columns of arrays with one element an export, as values of one statement. */
enum column { NAME, BOOT, SEQ, PEER, SHA256, LAYOUT, MARK, XML_BYTES, DIFF, SEVERITY, CHANGES, REASON, COLUMN_COUNT };
static const enum column all_columns[] = { NAME, BOOT, SEQ, PEER, SHA256, LAYOUT, MARK, XML_BYTES, DIFF };

static const enum column quota_columns[] = { NAME, PEER };

static void add_hash(struct buf *b, const char *hex)
{
	struct buf text = {0};

	buf_printf(&text, "\\x%s", hex);
	if (text.failed)
		b->failed = true;
	else
		db_array_text(b, text.data);
	buf_free(&text);
}

static void add_value(struct buf *b, enum column column, const struct commit_request *d)
{
	switch (column) {
	case NAME:
		db_array_text(b, d->claim->node);
		break;
	case BOOT:
		db_array_text(b, d->claim->boot_id);
		break;
	case SEQ:
		db_array_number(b, d->claim->seq);
		break;
	case PEER:
		db_array_text(b, d->host);
		break;
	case SHA256:
		add_hash(b, d->claim->sha256);
		break;
	case LAYOUT:
		db_array_text(b, d->encoded->layout.id);
		break;
	case MARK:
		db_array_text(b, d->encoded->layout.mark);
		break;
	case XML_BYTES:
		db_array_number(b, d->claim->length);
		break;
	case DIFF:
		db_array_bytes(b, d->encoded->diff.data, d->encoded->diff.len);
		break;
	case SEVERITY:
		db_array_text(b, d->encoded->drift.severity);
		break;
	case CHANGES:
		db_array_text(b, d->encoded->drift.json);
		break;
	case REASON:
		db_array_text(b, d->err.text);
		break;
	case COLUMN_COUNT:
		break;
	}
}

/* Run sql with the first n columns of the exports selected by `which`; not run when there are none. */
static int query_exports(struct db *db, const struct batch *t, bool (*which)(const struct commit_request *),
			 const char *sql, const enum column *columns, unsigned n, PGresult **out, struct err *e)
{
	struct buf column[COLUMN_COUNT] = {0};
	struct db_value v[COLUMN_COUNT];
	bool failed = false, any = false;
	PGresult *r = NULL;

	for (unsigned c = 0; c < n; c++) {
		db_array(&column[c]);
		for (size_t i = 0; i < t->n; i++)
			if (which(t->exports[i])) {
				add_value(&column[c], columns[c], t->exports[i]);
				any = true;
			}
		db_array_end(&column[c]);
		failed |= column[c].failed;
		v[c] = DB_TEXT(column[c].data);
	}
	if (failed)
		err_set(e, "out of memory");
	else if (any)
		r = db_query_prepared(db, e, sql, n, v);
	for (unsigned c = 0; c < n; c++)
		buf_free(&column[c]);
	if (out)
		*out = r;
	else
		PQclear(r);
	return failed || (any && !r) ? -1 : 0;
}

static bool any_export(const struct commit_request *d)
{
	(void) d;
	return true;
}

static bool has_document(const struct commit_request *d)
{
	return d->encoded;
}

static bool is_touched(const struct commit_request *d)
{
	return d->action == ACTION_TOUCH;
}

static bool is_replaced(const struct commit_request *d)
{
	return d->action == ACTION_REPLACE;
}

static bool is_inserted(const struct commit_request *d)
{
	return d->action == ACTION_INSERT;
}

static bool is_repaired(const struct commit_request *d)
{
	return d->action == ACTION_REPAIR;
}

static bool is_updated(const struct commit_request *d)
{
	return is_replaced(d) || is_repaired(d);
}

static bool is_stored(const struct commit_request *d)
{
	return is_updated(d) || is_inserted(d);
}

static bool drift_cleared(const struct commit_request *d)
{
	return is_updated(d) && !d->encoded->drift.json;
}

static bool is_drifted(const struct commit_request *d)
{
	return is_stored(d) && d->encoded->drift.json;
}

static bool is_unreadable(const struct commit_request *d)
{
	return d->unreadable && !is_repaired(d);
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
	d->action = ACTION_NONE;
	d->result = why;
}

static void set_stored(struct commit_request *d, enum export_action action, bool moved)
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

	snprintf(known.layout.id, sizeof(known.layout.id), "%s", PQgetvalue(r, row, R_LAYOUT));
	snprintf(known.layout.mark, sizeof(known.layout.mark), "%s", PQgetvalue(r, row, R_MARK));
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
		d->action = ACTION_TOUCH;
		d->receipt = (struct commit_receipt){ .stored = "known",
					       .xml_bytes = strtoul(PQgetvalue(r, row, R_XML_BYTES), NULL, 10) };
		snprintf(d->receipt.shape, sizeof(d->receipt.shape), "%s", shape);
	} else if (!d->encoded) {
		export_reject(d, COMMIT_ABSENT);
	} else if (d->unreadable && PQgetisnull(r, row, R_REASON)) {
		/* It was encoded in the class of a row that is now known to be unreadable. */
		export_reject(d, COMMIT_GONE);
	} else if (d->unreadable) {
		set_stored(d, same ? ACTION_REPAIR : ACTION_REPLACE, true);
	} else if (d->encoded->class != class && d->encoded->accepted_from != class) {
		export_reject(d, COMMIT_CLASS);
		d->receipt = (struct commit_receipt){ .class = class };
	} else {
		set_stored(d, ACTION_REPLACE, strcmp(shape, d->encoded->shape) != 0);
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

	if (query_exports(db, t, has_document, HOLD, all_columns, 1, NULL, e) ||
	    query_exports(db, t, any_export, HELD, all_columns, 1, &r, e))
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		struct commit_request *d = t->exports[i];

		d->result = COMMIT_OK;
		d->unreadable = false;
		if (row < PQntuples(r) && !strcmp(PQgetvalue(r, row, R_NAME), d->claim->node))
			decide_known(db, t->committer, d, r, row++);
		else if (d->encoded)
			set_stored(d, ACTION_INSERT, true);
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

	if (query_exports(db, t, is_replaced, QUOTA_SQL, quota_columns, 2, &r, e))
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
#define REPAIRED "DELETE FROM unreadable u USING node n WHERE n.name = ANY($1::text[]) AND u.node = n.name AND" \
	" u.since = n.since"
#define UNREADABLE "INSERT INTO unreadable (node, since, reason) SELECT n.name, n.since, u.reason" \
	" FROM unnest($1::text[], $2::text[]) AS u(name, reason) JOIN node n USING (name) ON CONFLICT DO NOTHING"
#define DELETE_DRIFT "DELETE FROM drift WHERE node = ANY($1::text[])"
#define DELETE_FACTS "DELETE FROM node_fact WHERE node = ANY($1::text[])"
#define DRIFT "INSERT INTO drift (node, severity, changes) SELECT * FROM unnest($1::text[], $2::text[], $3::jsonb[])" \
	" ON CONFLICT (node) DO UPDATE SET severity = excluded.severity, changes = excluded.changes," \
	" reported = drift.reported AND drift.changes = excluded.changes," \
	" since = CASE WHEN drift.changes = excluded.changes THEN drift.since ELSE clock_timestamp() END"

static const enum column drift_columns[] = { NAME, SEVERITY, CHANGES };
static const enum column unreadable_columns[] = { NAME, REASON };

/* PostgreSQL returned every row, with the bytes that it was sent. */
static int check_stored(const struct batch *t, bool (*which)(const struct commit_request *), const PGresult *r,
			struct err *e)
{
	int expected = 0, rc = 0;

	for (size_t i = 0; i < t->n; i++)
		expected += which(t->exports[i]);
	if (expected != (r ? PQntuples(r) : 0))
		return err_set(e, "another topiaryd committed an export of the same node");
	for (int i = 0; i < expected && rc == 0; i++) {
		const struct commit_request *d = find_export(t, PQgetvalue(r, i, 0));
		struct buf diff = {0};

		if (!d || db_bytes(r, i, 1, &diff))
			rc = err_set(e, "out of memory");
		else if (diff.len != d->encoded->diff.len ||
			 (diff.len && memcmp(diff.data, d->encoded->diff.data, diff.len)))
			rc = err_set(e, "%s: PostgreSQL returned different bytes than were sent", d->claim->node);
		buf_free(&diff);
	}
	return rc;
}

static int store_exports(struct db *db, const struct batch *t, bool (*which)(const struct commit_request *),
			 const char *sql, struct err *e)
{
	PGresult *r;
	int rc = query_exports(db, t, which, sql, all_columns, sizeof(all_columns) / sizeof(all_columns[0]), &r, e);

	if (rc == 0)
		rc = check_stored(t, which, r, e);
	PQclear(r);
	return rc;
}

static int touch_exports(struct db *db, const struct batch *t, struct err *e)
{
	int expected = 0, rc;
	PGresult *r;

	for (size_t i = 0; i < t->n; i++)
		expected += is_touched(t->exports[i]);
	if (query_exports(db, t, is_touched, TOUCH, all_columns, 5, &r, e))
		return -1;
	rc = expected == (r ? PQntuples(r) : 0) ? 0 :
	     err_set(e, "another export of the same node was committed meanwhile");
	PQclear(r);
	return rc;
}

static int store_facts(struct db *db, const struct batch *t, struct err *e)
{
	struct facts facts = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		if (is_stored(t->exports[i]) && t->exports[i]->encoded->facts)
			rc = facts_add(&facts, t->exports[i]->claim->node, t->exports[i]->encoded->facts, e);
	if (rc == 0)
		rc = facts_insert(db, &facts, FACTS_OF("node_fact", "node", "text"), e);
	facts_free(&facts);
	return rc;
}

/* These were compared with the document when encoded, and with the bytes that PostgreSQL returned. */
static void cache_verified(const struct batch *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct commit_request *d = t->exports[i];

		if (is_stored(d))
			verified_cache_add(t->committer->verified,
					   &(struct document_row){ .node = d->claim->node, .sha256 = d->claim->sha256,
								   .layout = d->encoded->layout,
								   .diff = d->encoded->diff });
		if (is_unreadable(d))
			log_warning("%s: the stored document cannot be rebuilt: %s; the node is asked to send it again",
				    d->claim->node, d->err.text);
	}
}

static int commit_batch(struct db *db, struct batch *t, struct err *e)
{
	if (db_execute(db, e, "BEGIN", 0, NULL) || decide_all(db, t, e) ||
	    decide_quota(db, t, t->committer->settings, e) ||
	    touch_exports(db, t, e) ||
	    query_exports(db, t, is_unreadable, UNREADABLE, unreadable_columns, 2, NULL, e) ||
	    store_exports(db, t, is_replaced, REPLACE, e) || store_exports(db, t, is_repaired, REPAIR, e) ||
		    store_exports(db, t, is_inserted, INSERT, e) ||
	    query_exports(db, t, is_repaired, REPAIRED, all_columns, 1, NULL, e) ||
	    query_exports(db, t, is_updated, DELETE_FACTS, all_columns, 1, NULL, e) || store_facts(db, t, e) ||
	    query_exports(db, t, drift_cleared, DELETE_DRIFT, all_columns, 1, NULL, e) ||
	    query_exports(db, t, is_drifted, DRIFT, drift_columns, 3, NULL, e) ||
	    db_execute(db, e, "COMMIT", 0, NULL))
		goto error;
	cache_verified(t);
	return 0;
error:
	db_execute(db, NULL, "ROLLBACK", 0, NULL);
	return -1;
}

static void fail_all(struct batch *t, const struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		t->exports[i]->result = COMMIT_FAILED;
		t->exports[i]->err = *e;
	}
}

/* Does the database lack the layout by which it was encoded? */
static bool layout_is_gone(struct db *db, const struct commit_request *d)
{
	char one[DB_KEY];

	return d->encoded && db_query_key(db, one, NULL, "SELECT 1 FROM layout f WHERE " LAYOUT_IS("$1", "$2"), 2,
				   (struct db_value[]){ DB_TEXT(d->encoded->layout.id),
							DB_TEXT(d->encoded->layout.mark) }) == 0;
}

/* One node's export must not fail others in its transaction: after a failure each is committed alone. */
static void commit_each(struct db *db, struct batch *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct batch one = { .committer = t->committer, .exports = { t->exports[i] }, .n = 1 };
		struct err e;

		if (!commit_batch(db, &one, &e))
			continue;
		fail_all(&one, &e);
		if (layout_is_gone(db, t->exports[i]))
			t->exports[i]->result = COMMIT_GONE;
	}
}

/* lock_not_available, query_canceled: a locked row would cost as much time again. */
static bool timed_out(const struct db *db)
{
	return !strcmp(db_state(db), "55P03") || !strcmp(db_state(db), "57014");
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
	for (int i = 0; db && i < TRIES && (i == 0 || (rc && db_alive(db) && !timed_out(db))); i++)
		rc = commit_batch(db, t, &e);
	if (rc && db && db_alive(db))
		commit_each(db, t);
	else if (rc)
		fail_all(t, &e);
	log_debug("transaction with %zu exports: %s after %.1f ms", t->n, rc ? e.text : "committed",
		  1000 * (clock_now() - begun));
	db_release(c->pool, db);
}

/* --- the queue --- */

static bool in_batch(const struct batch *t, const char *node)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->exports[i]->claim->node, node))
			return true;
	return false;
}

/* Takes the waiting exports, one for each node; a second one of a node goes into the next batch. */
static void next_batch(struct committer *c, struct batch *t)
{
	struct commit_request **at = &c->first;

	t->n = 0;
	while (*at && t->n < BATCH) {
		struct commit_request *d = *at;

		if (in_batch(t, d->claim->node)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		t->exports[t->n++] = d;
	}
	if (!*at)
		c->last = at;
}

static void count_result(struct commit_counts *n, const struct commit_request *d)
{
	n->known += d->result == COMMIT_OK && d->action == ACTION_TOUCH;
	n->kept += d->result == COMMIT_OK && d->action != ACTION_TOUCH;
	n->stale += d->result == COMMIT_STALE;
	n->failed += d->result == COMMIT_FAILED;
}

/* The lock is held, and released while waiting. */
static void space_batches(struct committer *c)
{
	double ms;

	while ((ms = BATCH_INTERVAL_MS - 1000 * (clock_now() - c->begun)) > 0) {
		pthread_mutex_unlock(&c->lock);
		nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
		pthread_mutex_lock(&c->lock);
	}
	c->begun = clock_now();
}

static void *run_committer(void *user)
{
	struct committer *c = user;
	struct batch t = { .committer = c };

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->first && !c->stop)
			pthread_cond_wait(&c->wake, &c->lock);
		if (!c->first)
			break;
		space_batches(c);
		next_batch(c, &t);
		if (!t.n)
			continue;
		pthread_mutex_unlock(&c->lock);
		run_batch(c, &t);
		pthread_mutex_lock(&c->lock);
		c->counts.batches++;
		for (size_t i = 0; i < t.n; i++)
			count_result(&c->counts, t.exports[i]);
		pthread_mutex_unlock(&c->lock);
		for (size_t i = 0; i < t.n; i++)
			t.exports[i]->done(t.exports[i]);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void commit_export(struct committer *c, struct commit_request *d)
{
	d->next = NULL;
	pthread_mutex_lock(&c->lock);
	*c->last = d;
	c->last = &d->next;
	pthread_mutex_unlock(&c->lock);
	/* Behind the lock, which the thread that wakes would wait for. */
	pthread_cond_signal(&c->wake);
}

struct committer *committer_start(struct db_pool *pool, const struct settings *settings, struct bases *b,
				  struct verified_cache *s,
				  unsigned threads, struct err *e)
{
	struct committer *c = calloc(1, sizeof(*c) + threads * sizeof(c->threads[0]));

	if (!c) {
		err_set(e, "out of memory");
		return NULL;
	}
	c->pool = pool;
	c->settings = settings;
	c->bases = b;
	c->verified = s;
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	for (; c->nthreads < threads; c->nthreads++)
		if (pthread_create(&c->threads[c->nthreads], NULL, run_committer, c)) {
			err_set(e, "cannot create a thread to commit exports");
			committer_stop(c);
			return NULL;
		}
	return c;
}

void committer_stop(struct committer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->nthreads; i++)
		pthread_join(c->threads[i], NULL);
	free(c);
}

void committer_counts(struct committer *c, struct commit_counts *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->counts;
	pthread_mutex_unlock(&c->lock);
}
