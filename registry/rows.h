/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_ROWS_H
#define TOPIARY_REGISTRY_ROWS_H

#include <stdbool.h>

#include "db.h"

/* Rows of SQL as JSON text, without a tree in between: a list may have 100,000 of them. */

enum column_kind {
	COLUMN_TEXT,
	COLUMN_PLAIN,	/* a number, or jsonb: JSON as PostgreSQL writes it */
	COLUMN_HIDDEN,	/* for us alone */
};

/* The columns of a result in their order; the last has no name. */
struct column {
	const char *name;
	enum column_kind kind;
};

/* A string with its quotes; text is UTF-8. */
void rows_text(struct buf *out, const char *text);
/* "name":value,"name":value: the members of one row's object, without its braces. */
void rows_members(struct buf *out, const PGresult *r, int row, const struct column *columns);

/*
 * A query's rows as [{...},{...}], read through a cursor, so that memory holds only the text. Ends early when that has max bytes, and
 * tells so in *more. 0 or -1.
 */
int rows_list(struct db *db, struct buf *out, size_t max, bool *more, const struct column *columns, const char *sql, unsigned n,
	      const struct db_value *values, struct err *e);

/* A column of time as answers have it (RFC 3339), to the second or the microsecond: SQL. */
#define RFC3339(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
#define RFC3339_US(x) "to_char(" x " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

#endif
