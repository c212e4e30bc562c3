/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "json_rows.h"

/*
 * Notes
 *
 * No data. Called in a worker, which has the connection for itself: a transaction holds its one cursor.
 */
#define FETCH "FETCH 2000 FROM topiary_rows"
/* The first rows come after the sort: 670,000 facts of 100,000 nodes take 3 s of CPU. */
#define LIST_SECONDS 60

static int declare_cursor(struct db *db, const char *sql, unsigned n, const struct db_value *values, struct err *e)
{
	struct buf cursor = {0};
	int rc;

	buf_printf(&cursor, "DECLARE topiary_rows NO SCROLL CURSOR FOR " JSON_ROWS("%s"), sql);
	rc = cursor.failed ? err_set(e, "out of memory") : db_execute(db, e, cursor.data, n, values);
	buf_free(&cursor);
	return rc;
}

int json_rows_list(struct db *db, struct buf *out, size_t max, bool *more, const char *sql, unsigned n,
		   const struct db_value *values, struct err *e)
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
		PGresult *r = db_query(db, e, FETCH, 0, NULL);

		rows = r ? PQntuples(r) : -1;
		for (int i = 0; i < rows && !*more; i++) {
			*more = out->len >= max;
			if (*more)
				break;
			buf_puts(out, out->len == begin ? "" : ",");
			buf_puts(out, PQgetvalue(r, i, 0));
		}
		PQclear(r);
	} while (rows > 0 && !*more && !out->failed);
	buf_add(out, "]", 1);
done:
	if (db_execute(db, rows < 0 ? NULL : e, rows < 0 ? "ROLLBACK" : "COMMIT", 0, NULL))
		rows = -1;
	if (rows >= 0 && out->failed)
		rows = err_set(e, "out of memory");
	return rows < 0 ? -1 : 0;
}
