/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "quota.h"

#include <stdlib.h>

bool quota_spent(const struct settings *s, const PGresult *r, int row)
{
	return (s->node_documents && strtoull(PQgetvalue(r, row, 1), NULL, 10) >= s->node_documents) ||
		(s->node_bytes &&
		 strtoull(PQgetvalue(r, row, 2), NULL, 10) >= (unsigned long long) s->node_bytes << 20);
}

int quota_left(struct db *db, const struct settings *s, const char *node, const char *host, struct err *e)
{
	const char *text[] = { node, host };
	struct buf array[2] = {0};
	PGresult *r = NULL;
	int rc;

	for (int i = 0; i < 2; i++) {
		db_array(&array[i]);
		db_array_text(&array[i], text[i]);
		db_array_end(&array[i]);
	}
	if (array[0].failed || array[1].failed)
		err_set(e, "out of memory");
	else
		r = db_query_prepared(db, e, QUOTA_SQL, 2,
				      (struct db_value[]){ DB_TEXT(array[0].data), DB_TEXT(array[1].data) });
	rc = !r ? -1 : !PQntuples(r) || !quota_spent(s, r, 0);
	PQclear(r);
	buf_free(&array[0]);
	buf_free(&array[1]);
	return rc;
}
