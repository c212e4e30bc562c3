/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <libpq-fe.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * A pool of connections to PostgreSQL, opened when first needed and again after failures. Times are UTC. No statement
 * waits longer than its limit, whether the server is stopped or the network silent: then its connection is closed, and
 * those open at that time are reopened. Called by all of the registry that reads or writes the database.
 */
struct db_pool;
struct db;

/* Is it a connection string? 0, or -1 with an error that names the setting. */
int db_conninfo_check(const char *setting, const char *conninfo, struct err *e);

/*
 * writes: commits must survive a crash of the server. Sessions wait for the disk (synchronous_commit at least on), and
 * a server with fsync=off is refused. prepare is called with each new connection and may refuse it. conninfo and user
 * are borrowed.
 */
struct db_pool *db_pool_new(const char *conninfo, unsigned size, bool writes,
			    int (*prepare)(struct db *db, void *user, struct err *e), void *user);
void db_pool_free(struct db_pool *p);
/* Reopen every connection before it is used next. */
void db_pool_invalidate(struct db_pool *p);

/* A connection, outside a transaction; NULL with an error when PostgreSQL is down or all are busy for 5 s. */
struct db *db_acquire(struct db_pool *p, struct err *e);
/* Return it to its pool; rolls back an open transaction and restores the usual limits. Accepts NULL. */
void db_release(struct db *db);

/* Until db_release or the next call: seconds that a statement may take, at the server and here; 0: no limit. */
#define DB_SECONDS 10	/* the default */
int db_limit(struct db *db, unsigned seconds, struct err *e);
/* Until db_release: seconds from now that all statements together may take; later ones fail. */
void db_limit_all(struct db *db, unsigned seconds);

/* A parameter: NUL-terminated text when len is 0, otherwise these bytes; NULL is SQL's NULL. */
struct db_value {
	const void *data;
	size_t len;
};
#define DB_TEXT(s) ((struct db_value){ (s), 0 })
#define DB_BYTES(d, n) ((struct db_value){ (d), (n) })
/* A number, as text that lives as long as the block. */
#define DB_NUMBER_TEXT 24
#define DB_NUMBER(n) DB_TEXT(db_number((char[DB_NUMBER_TEXT]){0}, (n)))
const char *db_number(char text[static DB_NUMBER_TEXT], long long n);

/*
 * Run one statement with its values. The caller calls PQclear on the result; NULL with an error. A commit with a
 * warning counts as failed and closes the connection: so PostgreSQL reports a cancelled wait for a standby.
 */
PGresult *db_query(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* A row's key as text: the first column of the first row. 1, 0 when there is no row, -1. */
#define DB_KEY 16
int db_query_key(struct db *db, char key[static DB_KEY], struct err *e, const char *sql, unsigned n,
		 const struct db_value *values);
/* As db_query, for a frequent statement: sql is a constant, prepared once a connection. */
PGresult *db_query_prepared(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* As db_query, without result: 0 or -1. */
int db_execute(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* End the open transaction: COMMIT if rc is 0, else ROLLBACK. Returns rc, or -1 if the commit failed. */
int db_end(struct db *db, int rc, struct err *e);
/* A script (a migration): several statements, no values. */
int db_script(struct db *db, struct err *e, const char *sql);

/* Run the pool's prepare on this connection: 0, or -1 with its error. */
int db_check(struct db *db, struct err *e);

/* Is the connection usable? */
bool db_alive(const struct db *db);

/*
 * SQLSTATE of the last statement that failed on this connection (PostgreSQL manual, appendix A), "" when the connection
 * failed.
 */
const char *db_state(const struct db *db);

/*
 * A PostgreSQL array as one value: {0}, elements, db_array_end. A NULL text is SQL's NULL.
 */
void db_array_text(struct buf *b, const char *text);
void db_array_span(struct buf *b, const char *text, size_t len);
void db_array_number(struct buf *b, long long n);
void db_array_bytes(struct buf *b, const void *data, size_t len);
void db_array_end(struct buf *b);

/*
 * Rows as arrays, one for each column: a statement with n arrays as $1 to $n, which it ends and frees in every case,
 * and `more` values behind them. As db_query, or db_query_prepared.
 */
PGresult *db_query_arrays(struct db *db, bool prepared, const char *sql, unsigned n, struct buf arrays[],
			  unsigned more, const struct db_value *values, struct err *e);

/* A bytea field; empty when NULL. 0, or -1 when out of memory. */
int db_bytes(const PGresult *r, int row, int column, struct buf *out);
