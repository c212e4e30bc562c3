/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_STORE_ROWS_H
#define TOPIARY_REGISTRY_STORE_ROWS_H

#include <stdbool.h>

#include "db.h"

/*
 * Query results as JSON text, without a tree in between: a list may have 100,000 rows. Called by fabric_store.c,
 * upkeep/fsck.c and http.
 */

enum json_column_kind {
	COLUMN_TEXT,
	COLUMN_PLAIN,	/* a number, or jsonb: JSON as PostgreSQL writes it */
	COLUMN_HIDDEN,	/* not written */
};

/* The columns of a result in order; the last has no name. */
struct json_column {
	const char *name;
	enum json_column_kind kind;
};

/* A quoted string; text is UTF-8. */
void json_rows_string(struct buf *out, const char *text);
/* "name":value,"name":value: the members of a row's object, without braces. */
void json_rows_members(struct buf *out, const PGresult *r, int row, const struct json_column *columns);

/*
 * A query's rows as [{...},{...}], read through a cursor, so that memory holds the text alone. Stops when that has max
 * bytes and sets *more. 0 or -1.
 */
int json_rows_list(struct db *db, struct buf *out, size_t max, bool *more, const struct json_column *columns,
		   const char *sql, unsigned n, const struct db_value *values, struct err *e);

/* SQL: a timestamp as in replies (RFC 3339), to the second or the microsecond. */
#define RFC3339(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
#define RFC3339_US(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

#endif
