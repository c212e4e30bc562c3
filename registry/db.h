/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_DB_H
#define TOPIARY_REGISTRY_DB_H

#include <libpq-fe.h>

#include "base/buf.h"
#include "base/err.h"

/* A few connections to PostgreSQL, made when first needed and again after they broke. The schema is brought up to date before
 * the first is given out. */
struct db_pool;
struct db;

struct db_pool *db_pool_new(const char *conninfo, const char *schema_dir, unsigned size);
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
/* The same, for a statement whose result is of no interest: 0 or -1. */
int db_do(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values);
/* A script of our own (a migration): several statements, no values. */
int db_script(struct db *db, struct err *e, const char *sql);

/* A bytea field; empty when NULL. 0, or -1 when memory is short. */
int db_bytes(const PGresult *r, int row, int column, struct buf *out);

#endif
