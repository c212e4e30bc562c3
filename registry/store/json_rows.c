/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "json_rows.h"

#define FETCH "FETCH 2000 FROM topiary_rows"
/* The first rows come after the sort: 670,000 facts of 100,000 nodes take 3 s of CPU. */
#define LIST_SECONDS 60

static void add_escaped(struct buf *out, unsigned char c)
{
	if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", c);
	else
		buf_printf(out, "\\u%04x", c);
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c != '"' && c != '\\' && c != 0x7f;
}

void json_rows_string(struct buf *out, const char *text)
{
	const char *run = text;

	buf_add(out, "\"", 1);
	for (; *text; text++) {
		if (is_plain(*text))
			continue;
		buf_add(out, run, text - run);
		add_escaped(out, *text);
		run = text + 1;
	}
	buf_add(out, run, text - run);
	buf_add(out, "\"", 1);
}

static void add_value(struct buf *out, const PGresult *r, int row, int column, enum json_column_kind kind)
{
	if (PQgetisnull(r, row, column))
		buf_puts(out, "null");
	else if (kind == COLUMN_TEXT)
		json_rows_string(out, PQgetvalue(r, row, column));
	else
		buf_puts(out, PQgetvalue(r, row, column));
}

void json_rows_members(struct buf *out, const PGresult *r, int row, const struct json_column *columns)
{
	const char *comma = "";

	for (int i = 0; columns[i].name; i++) {
		if (columns[i].kind == COLUMN_HIDDEN)
			continue;
		buf_puts(out, comma);
		json_rows_string(out, columns[i].name);
		buf_add(out, ":", 1);
		add_value(out, r, row, i, columns[i].kind);
		comma = ",";
	}
}

/* Append the next rows: how many were fetched, or -1. */
static int fetch_rows(struct db *db, struct buf *out, size_t max, size_t begin, bool *more,
		      const struct json_column *columns, struct err *e)
{
	PGresult *r = db_query(db, e, FETCH, 0, NULL);
	int n = r ? PQntuples(r) : -1;

	for (int i = 0; i < n && !*more; i++) {
		*more = out->len >= max;
		if (*more)
			break;
		buf_puts(out, out->len == begin ? "{" : ",{");
		json_rows_members(out, r, i, columns);
		buf_add(out, "}", 1);
	}
	PQclear(r);
	return n;
}

static int declare_cursor(struct db *db, const char *sql, unsigned n, const struct db_value *values, struct err *e)
{
	struct buf cursor = {0};
	int rc;

	buf_printf(&cursor, "DECLARE topiary_rows NO SCROLL CURSOR FOR %s", sql);
	rc = cursor.failed ? err_set(e, "out of memory") : db_execute(db, e, cursor.data, n, values);
	buf_free(&cursor);
	return rc;
}

int json_rows_list(struct db *db, struct buf *out, size_t max, bool *more, const struct json_column *columns,
		   const char *sql, unsigned n, const struct db_value *values, struct err *e)
{
	size_t begin;
	int rows = -1;

	*more = false;
	buf_add(out, "[", 1);
	begin = out->len;
	/* Plan for all rows, not for the first. */
	if (db_execute(db, e, "BEGIN READ ONLY", 0, NULL) ||
	    db_execute(db, e, "SET LOCAL cursor_tuple_fraction = 1", 0, NULL) ||
	    declare_cursor(db, sql, n, values, e) || db_limit(db, LIST_SECONDS, e))
		goto done;
	do {
		rows = fetch_rows(db, out, max, begin, more, columns, e);
	} while (rows > 0 && !*more && !out->failed);
	buf_add(out, "]", 1);
done:
	if (db_execute(db, rows < 0 ? NULL : e, rows < 0 ? "ROLLBACK" : "COMMIT", 0, NULL))
		rows = -1;
	if (rows >= 0 && out->failed)
		rows = err_set(e, "out of memory");
	return rows < 0 ? -1 : 0;
}
