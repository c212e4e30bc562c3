/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_DB_H
#define TOPIARY_REGISTRY_DB_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* A few connections to PostgreSQL, made when first needed and again after they broke. Times are UTC. */
struct db_pool;
struct db;

/* prepare is called once, with the first connection, before any is given out; NULL for nothing. conninfo and user are borrowed. */
struct db_pool *db_pool_new(const char *conninfo, unsigned size, int (*prepare)(struct db *db, const void *user, struct err *e),
			    const void *user);
void db_pool_free(struct db_pool *p);

/* A connection of one's own, outside a transaction; NULL with an error when PostgreSQL is down or all are busy for 5 s. */
struct db *db_take(struct db_pool *p, struct err *e);
/* Give it back; a transaction left open is rolled back. Accepts NULL. */
void db_give(struct db_pool *p, struct db *db);

/* A parameter: text ends with a NUL when len is 0, otherwise these bytes; NULL is SQL's. */
struct db_value {
	const void *data;
	size_t len;
};
#define DB_TEXT(s) ((struct db_value){ (s), 0 })
#define DB_BYTES(d, n) ((struct db_value){ (d), (n) })

/* One statement, its values always apart from its text. The result is PQclear'ed by the caller; NULL with an error. */
PGresult *db_query(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* A row's key as PostgreSQL writes it: the first column of the first row. 1, 0 when there is no row, -1. */
#define DB_KEY 16
int db_key(struct db *db, char key[static DB_KEY], struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* The same, for a statement that comes often: sql is a constant, and is prepared once a connection. */
PGresult *db_often(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* The same, for a statement whose result is of no interest: 0 or -1. */
int db_do(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* A script of our own (a migration): several statements, no values. */
int db_script(struct db *db, struct err *e, const char *sql);

/* Is the connection whole? */
bool db_alive(const struct db *db);

/* The SQLSTATE of the last statement that failed on this connection (PostgreSQL manual, appendix A), "" when the connection did. */
const char *db_state(const struct db *db);

/* An array as PostgreSQL reads it, to be passed as one value: begin with db_array, add elements, end with db_array_end. A NULL text is
 * SQL's NULL. */
void db_array(struct buf *b);
void db_array_text(struct buf *b, const char *text);
void db_array_number(struct buf *b, long long n);
void db_array_bytes(struct buf *b, const void *data, size_t len);
void db_array_end(struct buf *b);

/* A bytea field; empty when NULL. 0, or -1 when memory is short. */
int db_bytes(const PGresult *r, int row, int column, struct buf *out);

#endif
