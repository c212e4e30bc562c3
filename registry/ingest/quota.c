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

int quota_left(struct db *db, const struct settings *s, const char *node, struct err *e)
{
	struct buf names = {0};
	PGresult *r = NULL;
	int rc;

	db_array(&names);
	db_array_text(&names, node);
	db_array_end(&names);
	if (names.failed)
		err_set(e, "out of memory");
	else
		r = db_query(db, e, QUOTA_SQL, 1, &DB_TEXT(names.data));
	rc = !r ? -1 : !PQntuples(r) || !quota_spent(s, r, 0);
	PQclear(r);
	buf_free(&names);
	return rc;
}
