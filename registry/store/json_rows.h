/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "db.h"

/*
 * Query results as JSON text by PostgreSQL's json functions, without a tree in between: a list may have 100,000 rows.
 * Called by fabric_store.c and http.
 */

/* SQL: each row of a query as an object, its members named as its columns. */
#define JSON_ROWS(sql) "SELECT row_to_json(j)::text FROM (" sql ") j"

/*
 * A query's rows as [{...},{...}], read through a cursor, so that memory holds the text alone. Stops when that has max
 * bytes and sets *more. 0 or -1.
 */
int json_rows_list(struct db *db, struct buf *out, size_t max, bool *more, const char *sql, unsigned n,
		   const struct db_value *values, struct err *e);

/* SQL: a timestamp as in replies (RFC 3339), to the second or the microsecond. */
#define RFC3339(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
#define RFC3339_US(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
