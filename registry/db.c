/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "db.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VALUES_MAX 20
#define WAIT_SECONDS 5
#define PREPARED_MAX 16

struct db {
	PGconn *conn;
	bool busy;
	char state[6];
	const char *prepared[PREPARED_MAX];	/* statement i is named after its place */
	unsigned nprepared;
};

struct db_pool {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	const char *conninfo;
	int (*prepare)(struct db *db, const void *user, struct err *e);
	const void *user;
	pthread_mutex_t preparing;
	bool prepared;
	unsigned size;
	struct db db[];
};

struct db_pool *db_pool_new(const char *conninfo, unsigned size, int (*prepare)(struct db *db, const void *user, struct err *e),
			    const void *user)
{
	struct db_pool *p = calloc(1, sizeof(*p) + size * sizeof(p->db[0]));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->preparing, NULL);
	pthread_cond_init(&p->freed, NULL);
	p->conninfo = conninfo;
	p->prepare = prepare;
	p->user = user;
	p->prepared = !prepare;
	p->size = size;
	return p;
}

void db_pool_free(struct db_pool *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->size; i++)
		PQfinish(p->db[i].conn);
	free(p);
}

static int fail(struct db *db, struct err *e)
{
	const char *text = PQerrorMessage(db->conn);

	return err_set(e, "PostgreSQL: %.*s", (int) strcspn(text, "\n"), text);
}

static int db_connect(struct db *db, const char *conninfo, struct err *e)
{
	const char *keys[] = { "connect_timeout", "application_name", "client_encoding", "options", "dbname", NULL };
	const char *values[] = { "3", "topiaryd", "UTF8",
		"-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s -c client_min_messages=warning"
		" -c TimeZone=UTC",
		conninfo, NULL };

	/* A server that went away while the connection was idle shows only to who reads: its last words first, then that it closed. */
	if (db->conn && PQconsumeInput(db->conn) && PQconsumeInput(db->conn) && PQstatus(db->conn) == CONNECTION_OK)
		return 0;
	PQfinish(db->conn);
	db->nprepared = 0;
	db->conn = PQconnectdbParams(keys, values, 1);
	return PQstatus(db->conn) == CONNECTION_OK ? 0 : fail(db, e);
}

static struct db *wait_free(struct db_pool *p)
{
	struct timespec until;
	struct db *db = NULL;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&p->lock);
	while (!db && rc != ETIMEDOUT) {
		for (unsigned i = 0; i < p->size && !db; i++)
			db = p->db[i].busy ? NULL : &p->db[i];
		if (!db)
			rc = pthread_cond_timedwait(&p->freed, &p->lock, &until);
	}
	if (db)
		db->busy = true;
	pthread_mutex_unlock(&p->lock);
	return db;
}

static int prepare_once(struct db_pool *p, struct db *db, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->preparing);
	if (!p->prepared && (rc = p->prepare(db, p->user, e)) == 0)
		p->prepared = true;
	pthread_mutex_unlock(&p->preparing);
	return rc;
}

struct db *db_take(struct db_pool *p, struct err *e)
{
	struct db *db = wait_free(p);

	if (!db) {
		err_set(e, "PostgreSQL: all connections are busy");
		return NULL;
	}
	if (db_connect(db, p->conninfo, e) || prepare_once(p, db, e)) {
		db_give(p, db);
		return NULL;
	}
	return db;
}

void db_give(struct db_pool *p, struct db *db)
{
	if (!db)
		return;
	if (PQtransactionStatus(db->conn) != PQTRANS_IDLE)
		db_do(db, NULL, "ROLLBACK", 0, NULL);
	pthread_mutex_lock(&p->lock);
	db->busy = false;
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
}

static PGresult *checked(struct db *db, PGresult *r, struct err *e)
{
	ExecStatusType status = PQresultStatus(r);

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return r;
	snprintf(db->state, sizeof(db->state), "%s", PQresultErrorField(r, PG_DIAG_SQLSTATE) ?: "");
	fail(db, e);
	PQclear(r);
	return NULL;
}

bool db_alive(const struct db *db)
{
	return PQstatus(db->conn) == CONNECTION_OK;
}

const char *db_state(const struct db *db)
{
	return db->state;
}

/* Values as libpq takes them. */
struct values {
	const char *data[VALUES_MAX];
	int length[VALUES_MAX], binary[VALUES_MAX];
};

static void values_set(struct values *v, unsigned n, const struct db_value *values)
{
	for (unsigned i = 0; i < n; i++) {
		v->data[i] = values[i].data;
		v->length[i] = values[i].len;
		v->binary[i] = values[i].len > 0;
	}
}

PGresult *db_query(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	struct values v;

	values_set(&v, n, values);
	return checked(db, PQexecParams(db->conn, sql, n, NULL, v.data, v.length, v.binary, 0), e);
}

/* The name of the statement, prepared; NULL with an error. */
static const char *prepare(struct db *db, const char *sql, char name[static 16], struct err *e)
{
	unsigned i = 0;
	PGresult *r;

	while (i < db->nprepared && db->prepared[i] != sql)
		i++;
	snprintf(name, 16, "s%u", i);
	if (i < db->nprepared)
		return name;
	if (!(r = checked(db, PQprepare(db->conn, name, sql, 0, NULL), e)))
		return NULL;
	PQclear(r);
	db->prepared[db->nprepared++] = sql;
	return name;
}

PGresult *db_often(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	struct values v;
	char name[16];

	if (db->nprepared == PREPARED_MAX)
		return db_query(db, e, sql, n, values);
	values_set(&v, n, values);
	return prepare(db, sql, name, e) ? checked(db, PQexecPrepared(db->conn, name, n, v.data, v.length, v.binary, 0), e) : NULL;
}

int db_key(struct db *db, char key[static DB_KEY], struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	PGresult *r = db_query(db, e, sql, n, values);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0)
		snprintf(key, DB_KEY, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return rows > 0 ? 1 : rows;
}

int db_do(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	PGresult *r = db_query(db, e, sql, n, values);

	PQclear(r);
	return r ? 0 : -1;
}

int db_script(struct db *db, struct err *e, const char *sql)
{
	PGresult *r = checked(db, PQexec(db->conn, sql), e);

	PQclear(r);
	return r ? 0 : -1;
}

void db_array(struct buf *b)
{
	b->len = 0;
	buf_puts(b, "{");
}

static void element(struct buf *b)
{
	if (b->len > 1)
		buf_add(b, ",", 1);
}

void db_array_text(struct buf *b, const char *text)
{
	element(b);
	if (!text) {
		buf_puts(b, "NULL");
		return;
	}
	buf_add(b, "\"", 1);
	for (size_t n; *text; text += n) {
		if (!(n = strcspn(text, "\"\\"))) {
			buf_add(b, "\\", 1);
			n = 1;
		}
		buf_add(b, text, n);
	}
	buf_add(b, "\"", 1);
}

void db_array_number(struct buf *b, long long n)
{
	element(b);
	buf_printf(b, "%lld", n);
}

void db_array_bytes(struct buf *b, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = data;
	char *to;

	element(b);
	buf_puts(b, "\"\\\\x");
	if (!(to = buf_reserve(b, 2 * len)))
		return;
	for (size_t i = 0; i < len; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	b->len += 2 * len;
	buf_add(b, "\"", 1);
}

void db_array_end(struct buf *b)
{
	buf_add(b, "}", 1);
}

int db_bytes(const PGresult *r, int row, int column, struct buf *out)
{
	struct buf b = {0};
	size_t len;
	unsigned char *raw = PQunescapeBytea((unsigned char *) PQgetvalue(r, row, column), &len);

	if (!raw)
		return -1;
	buf_add(&b, raw, len);
	PQfreemem(raw);
	if (b.failed)
		return -1;
	*out = b;
	return 0;
}
