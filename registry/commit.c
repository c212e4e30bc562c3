/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "commit.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "facts.h"

#define BATCH 256
#define APART_MS 20	/* the begins of two batches: under load more go with each, and who comes alone does not wait */
#define FOREIGN_KEY_VIOLATION "23503"
#define TRIES 3		/* of a batch that met a node which another topiaryd was adding */

enum fate { FATE_NONE, FATE_TOUCH, FATE_REPLACE, FATE_INSERT };

/* One export, from its request to its reply. */
struct deed {
	const struct claim *claim;
	const struct placed *placed;
	enum fate fate;
	enum commit_result result;
	struct receipt receipt;
	struct err err;
	sem_t done;
	struct deed *next;
};

struct committer {
	struct db_pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct deed *first, **last;
	bool stop;
	int64_t begun;		/* the latest batch, in now_ms */
	struct commit_counts counts;
	unsigned nthreads;
	pthread_t threads[];
};

/* --- one transaction --- */

struct batch {
	struct deed *deeds[BATCH];
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct deed *const *) a)->claim->node, (*(struct deed *const *) b)->claim->node);
}

/* Columns of arrays, one element a deed of some fate, as values of one statement. */
enum column { NAME, BOOT, SEQ, SHA256, FORM, XML_BYTES, DIFF, SEVERITY, CHANGES, COLUMN_COUNT };
static const enum column all_columns[] = { NAME, BOOT, SEQ, SHA256, FORM, XML_BYTES, DIFF };

static void put_hash(struct buf *b, const char *hex)
{
	struct buf text = {0};

	buf_printf(&text, "\\x%s", hex);
	if (text.failed)
		b->failed = true;
	else
		db_array_text(b, text.data);
	buf_free(&text);
}

static void put(struct buf *b, enum column column, const struct deed *d)
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
	case SHA256:
		put_hash(b, d->claim->sha256);
		break;
	case FORM:
		db_array_text(b, d->placed->form);
		break;
	case XML_BYTES:
		db_array_number(b, d->claim->length);
		break;
	case DIFF:
		db_array_bytes(b, d->placed->diff.data, d->placed->diff.len);
		break;
	case SEVERITY:
		db_array_text(b, d->placed->drift.severity);
		break;
	case CHANGES:
		db_array_text(b, d->placed->drift.json);
		break;
	case COLUMN_COUNT:
		break;
	}
}

/* Run sql with the first `columns` columns of the deeds that `which` takes; nothing when there are none. */
static int with_deeds(struct db *db, const struct batch *t, bool (*which)(const struct deed *), const char *sql,
		      const enum column *columns, unsigned n, PGresult **out, struct err *e)
{
	struct buf column[COLUMN_COUNT] = {0};
	struct db_value v[COLUMN_COUNT];
	bool failed = false, any = false;
	PGresult *r = NULL;

	for (unsigned c = 0; c < n; c++) {
		db_array(&column[c]);
		for (size_t i = 0; i < t->n; i++)
			if (which(t->deeds[i])) {
				put(&column[c], columns[c], t->deeds[i]);
				any = true;
			}
		db_array_end(&column[c]);
		failed |= column[c].failed;
		v[c] = DB_TEXT(column[c].data);
	}
	if (failed)
		err_set(e, "out of memory");
	else if (any)
		r = db_often(db, e, sql, n, v);
	for (unsigned c = 0; c < n; c++)
		buf_free(&column[c]);
	if (out)
		*out = r;
	else
		PQclear(r);
	return failed || (any && !r) ? -1 : 0;
}

static bool every(const struct deed *d)
{
	(void) d;
	return true;
}

static bool touched(const struct deed *d)
{
	return d->fate == FATE_TOUCH;
}

static bool replaced(const struct deed *d)
{
	return d->fate == FATE_REPLACE;
}

static bool inserted(const struct deed *d)
{
	return d->fate == FATE_INSERT;
}

static bool mended(const struct deed *d)
{
	return d->fate == FATE_REPLACE && !d->placed->drift.json;
}

static bool drifted(const struct deed *d)
{
	return (d->fate == FATE_REPLACE || d->fate == FATE_INSERT) && d->placed->drift.json;
}

/* --- what becomes of each --- */

enum { R_NAME, R_SEQ, R_BOOT, R_SHA256, R_SHAPE, R_CLASS, R_XML_BYTES };
#define HOLD "SELECT 1 FROM node WHERE name = ANY($1::text[]) ORDER BY name COLLATE \"C\" FOR UPDATE"
/* By itself: a statement that waits for a row which upkeep moves to a form that is newer than the statement joins it with nothing. */
#define HELD "SELECT n.name, n.seq, n.boot, encode(n.sha256, 'hex'), f.shape, b.class, n.xml_bytes" \
	" FROM node n JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base" \
	" WHERE n.name = ANY($1::text[]) ORDER BY n.name COLLATE \"C\""

static void leave(struct deed *d, enum commit_result why)
{
	d->fate = FATE_NONE;
	d->result = why;
}

static void note_kept(struct deed *d, enum fate fate, bool moved)
{
	d->fate = fate;
	d->receipt = (struct receipt){ .stored = d->placed->kind, .stored_bytes = d->placed->stored_bytes,
				       .xml_bytes = d->claim->length, .moved = moved, .drifted = d->placed->drift.json };
	snprintf(d->receipt.shape, sizeof(d->receipt.shape), "%s", d->placed->shape);
}

static void judge_known(struct deed *d, const PGresult *r, int row)
{
	const char *shape = PQgetvalue(r, row, R_SHAPE);
	int class = atoi(PQgetvalue(r, row, R_CLASS));

	if (!strcmp(PQgetvalue(r, row, R_BOOT), d->claim->boot_id) &&
	    strtoull(PQgetvalue(r, row, R_SEQ), NULL, 10) >= d->claim->seq) {
		leave(d, COMMIT_STALE);
	} else if (!strcmp(PQgetvalue(r, row, R_SHA256), d->claim->sha256)) {
		d->fate = FATE_TOUCH;
		d->receipt = (struct receipt){ .stored = "known", .xml_bytes = strtoul(PQgetvalue(r, row, R_XML_BYTES), NULL, 10) };
		snprintf(d->receipt.shape, sizeof(d->receipt.shape), "%s", shape);
	} else if (!d->placed) {
		leave(d, COMMIT_ABSENT);
	} else if (d->placed->class != class && d->placed->accepted_from != class) {
		leave(d, COMMIT_CLASS);
		d->receipt = (struct receipt){ .class = class };
	} else {
		note_kept(d, FATE_REPLACE, strcmp(shape, d->placed->shape) != 0);
	}
}

/* The rows are held from here on, so that the exports of a node come one after another. Both are in the order of the names. */
static int judge(struct db *db, struct batch *t, struct err *e)
{
	PGresult *r;
	int row = 0;

	if (with_deeds(db, t, every, HOLD, all_columns, 1, NULL, e) || with_deeds(db, t, every, HELD, all_columns, 1, &r, e))
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		struct deed *d = t->deeds[i];

		d->result = COMMIT_OK;
		if (row < PQntuples(r) && !strcmp(PQgetvalue(r, row, R_NAME), d->claim->node))
			judge_known(d, r, row++);
		else if (d->placed)
			note_kept(d, FATE_INSERT, true);
		else
			leave(d, COMMIT_ABSENT);
	}
	PQclear(r);
	return 0;
}

/* --- doing it --- */

#define ROWS "unnest($1::text[], $2::uuid[], $3::bigint[], $4::bytea[], $5::int[], $6::int[], $7::bytea[])" \
	" AS u(name, boot, seq, sha256, form, xml_bytes, diff)"
#define TOUCH "UPDATE node n SET seen = greatest(0, ceil(extract(epoch FROM clock_timestamp() - n.since)))," \
	" boot = u.boot, seq = u.seq" \
	" FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS u(name, boot, seq) WHERE n.name = u.name"
/* Told by the clock, not by the transaction's beginning: that may lie before the one which it waited for. */
#define REPLACE "WITH u AS (SELECT * FROM clock_timestamp() AS c(t), " ROWS ")," \
	" old AS (INSERT INTO past (since, until, form, xml_bytes, sha256, node, diff)" \
	" SELECT n.since, u.t, n.form, n.xml_bytes, n.sha256, n.name, n.diff FROM node n JOIN u ON u.name = n.name)" \
	" UPDATE node n SET since = u.t, seen = 0, boot = u.boot, seq = u.seq, sha256 = u.sha256, form = u.form," \
	" xml_bytes = u.xml_bytes, diff = u.diff FROM u WHERE n.name = u.name RETURNING n.name, n.diff"
#define INSERT "INSERT INTO node (since, seq, boot, form, xml_bytes, sha256, name, diff)" \
	" SELECT c.t, u.seq, u.boot, u.form, u.xml_bytes, u.sha256, u.name, u.diff FROM clock_timestamp() AS c(t), " ROWS \
	" ON CONFLICT DO NOTHING RETURNING name, diff"
#define MEND "DELETE FROM drift WHERE node = ANY($1::text[])"
#define FORGET "DELETE FROM node_fact WHERE node = ANY($1::text[])"
#define DRIFT "INSERT INTO drift (node, severity, changes) SELECT * FROM unnest($1::text[], $2::text[], $3::jsonb[])" \
	" ON CONFLICT (node) DO UPDATE SET severity = excluded.severity, changes = excluded.changes," \
	" told = drift.told AND drift.changes = excluded.changes," \
	" since = CASE WHEN drift.changes = excluded.changes THEN drift.since ELSE clock_timestamp() END"

static const enum column drift_columns[] = { NAME, SEVERITY, CHANGES };

static struct deed *find(const struct batch *t, const char *name)
{
	struct claim claim;
	struct deed wanted = { .claim = &claim }, *key = &wanted, *const *found;

	snprintf(claim.node, sizeof(claim.node), "%s", name);
	found = bsearch(&key, t->deeds, t->n, sizeof(*t->deeds), by_name);
	return found ? *found : NULL;
}

/* What PostgreSQL says it keeps is what it was given, and of each one. */
static int check(const struct batch *t, bool (*which)(const struct deed *), const PGresult *r, struct err *e)
{
	int expected = 0, rc = 0;

	for (size_t i = 0; i < t->n; i++)
		expected += which(t->deeds[i]);
	if (expected != (r ? PQntuples(r) : 0))
		return err_set(e, "another export of a node came between");
	for (int i = 0; i < expected && rc == 0; i++) {
		const struct deed *d = find(t, PQgetvalue(r, i, 0));
		struct buf diff = {0};

		if (!d || db_bytes(r, i, 1, &diff))
			rc = err_set(e, "out of memory");
		else if (diff.len != d->placed->diff.len || (diff.len && memcmp(diff.data, d->placed->diff.data, diff.len)))
			rc = err_set(e, "%s: what was stored is not what was sent", d->claim->node);
		buf_free(&diff);
	}
	return rc;
}

static int keep(struct db *db, const struct batch *t, bool (*which)(const struct deed *), const char *sql, struct err *e)
{
	PGresult *r;
	int rc = with_deeds(db, t, which, sql, all_columns, sizeof(all_columns) / sizeof(all_columns[0]), &r, e);

	if (rc == 0)
		rc = check(t, which, r, e);
	PQclear(r);
	return rc;
}

static int keep_facts(struct db *db, const struct batch *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct deed *d = t->deeds[i];

		if ((replaced(d) || inserted(d)) && d->placed->facts &&
		    facts_insert(db, "INSERT INTO node_fact (node, line, object, name, value) SELECT $1::text, * " FACTS_ROWS,
				 d->claim->node, d->placed->facts, e))
			return -1;
	}
	return 0;
}

static int transact(struct db *db, struct batch *t, struct err *e)
{
	if (db_do(db, e, "BEGIN", 0, NULL) || judge(db, t, e) ||
	    with_deeds(db, t, touched, TOUCH, all_columns, 3, NULL, e) ||
	    keep(db, t, replaced, REPLACE, e) || keep(db, t, inserted, INSERT, e) ||
	    with_deeds(db, t, replaced, FORGET, all_columns, 1, NULL, e) || keep_facts(db, t, e) ||
	    with_deeds(db, t, mended, MEND, all_columns, 1, NULL, e) ||
	    with_deeds(db, t, drifted, DRIFT, drift_columns, 3, NULL, e))
		goto error;
	return db_do(db, e, "COMMIT", 0, NULL);
error:
	db_do(db, NULL, "ROLLBACK", 0, NULL);
	return -1;
}

static void fail_all(struct batch *t, const struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		t->deeds[i]->result = COMMIT_FAILED;
		t->deeds[i]->err = *e;
	}
}

/* What one node sent must not fail the others that share its transaction: when it fails, each goes by itself. */
static void transact_each(struct db *db, struct batch *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct batch one = { .deeds = { t->deeds[i] }, .n = 1 };
		struct err e;

		if (!transact(db, &one, &e))
			continue;
		fail_all(&one, &e);
		if (!strcmp(db_state(db), FOREIGN_KEY_VIOLATION))
			t->deeds[i]->result = COMMIT_GONE;
	}
}

static void run_batch(struct committer *c, struct batch *t)
{
	struct err e;
	struct db *db = db_take(c->pool, &e);
	int rc = db ? 0 : -1;

	qsort(t->deeds, t->n, sizeof(*t->deeds), by_name);
	for (int i = 0; db && i < TRIES && (i == 0 || rc); i++)
		rc = transact(db, t, &e);
	if (rc && db && db_alive(db))
		transact_each(db, t);
	else if (rc)
		fail_all(t, &e);
	db_give(c->pool, db);
}

/* --- the queue --- */

static bool in_batch(const struct batch *t, const char *node)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->deeds[i]->claim->node, node))
			return true;
	return false;
}

/* Take what waits; of a node's exports only the first, the next goes with the next batch. */
static void take_batch(struct committer *c, struct batch *t)
{
	struct deed **at = &c->first;

	t->n = 0;
	while (*at && t->n < BATCH) {
		struct deed *d = *at;

		if (in_batch(t, d->claim->node)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		t->deeds[t->n++] = d;
	}
	if (!*at)
		c->last = at;
}

static void count(struct commit_counts *n, const struct deed *d)
{
	n->known += d->result == COMMIT_OK && d->fate == FATE_TOUCH;
	n->kept += d->result == COMMIT_OK && d->fate != FATE_TOUCH;
	n->stale += d->result == COMMIT_STALE;
	n->failed += d->result == COMMIT_FAILED;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* With the lock held, which it leaves while it waits. */
static void keep_apart(struct committer *c)
{
	int64_t ms;

	while ((ms = c->begun + APART_MS - now_ms()) > 0) {
		pthread_mutex_unlock(&c->lock);
		nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
		pthread_mutex_lock(&c->lock);
	}
	c->begun = now_ms();
}

static void *run(void *user)
{
	struct committer *c = user;
	struct batch t;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->first && !c->stop)
			pthread_cond_wait(&c->wake, &c->lock);
		if (!c->first)
			break;
		keep_apart(c);
		take_batch(c, &t);
		if (!t.n)
			continue;
		pthread_mutex_unlock(&c->lock);
		run_batch(c, &t);
		pthread_mutex_lock(&c->lock);
		c->counts.batches++;
		for (size_t i = 0; i < t.n; i++) {
			count(&c->counts, t.deeds[i]);
			sem_post(&t.deeds[i]->done);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

enum commit_result commit_export(struct committer *c, const struct claim *claim, const struct placed *placed, struct receipt *out,
				 struct err *e)
{
	struct deed d = { .claim = claim, .placed = placed };

	sem_init(&d.done, 0, 0);
	pthread_mutex_lock(&c->lock);
	*c->last = &d;
	c->last = &d.next;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	while (sem_wait(&d.done))
		;
	sem_destroy(&d.done);
	if (d.result == COMMIT_OK || d.result == COMMIT_CLASS)
		*out = d.receipt;
	else if (d.result == COMMIT_FAILED)
		*e = d.err;
	return d.result;
}

struct committer *committer_start(struct db_pool *pool, unsigned threads, struct err *e)
{
	struct committer *c = calloc(1, sizeof(*c) + threads * sizeof(c->threads[0]));

	if (!c) {
		err_set(e, "out of memory");
		return NULL;
	}
	c->pool = pool;
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	for (; c->nthreads < threads; c->nthreads++)
		if (pthread_create(&c->threads[c->nthreads], NULL, run, c)) {
			err_set(e, "no thread to commit exports");
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
