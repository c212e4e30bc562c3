/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "vacuum.h"

#include <stdio.h>

#define ROWS_MIN "1000"		/* dead ones that are worth it, and the part of the table that must be dead */
#define PART "10"

static const struct {
	const char *name, *vacuum;
} tables[EMPTIED] = {
	[IN_NODE] = { "node", "VACUUM (SKIP_LOCKED) node" },
	[IN_NODE_FACT] = { "node_fact", "VACUUM (SKIP_LOCKED) node_fact" },
	[IN_PAST] = { "past", "VACUUM (SKIP_LOCKED) past" },
};

/* 1 or 0, -1. */
static int is_large_part(struct pass *p, enum emptied t, struct err *e)
{
	char rows[24], one[DB_KEY];

	snprintf(rows, sizeof(rows), "%llu", p->emptied[t]);
	return db_key(p->db, one, e, "SELECT 1 FROM pg_class WHERE oid = $1::regclass"
		      " AND $2::bigint > greatest(" ROWS_MIN ", reltuples / " PART ")", 2,
		      (struct db_value[]){ DB_TEXT(tables[t].name), DB_TEXT(rows) });
}

/* Of what it may not do, or what somebody else is doing, PostgreSQL only warns: of that nobody need hear. */
static int vacuum(struct db *db, const char *sql, struct err *e)
{
	int rc = db_do(db, e, "SET client_min_messages = error", 0, NULL) || db_do(db, e, "SET statement_timeout = 0", 0, NULL) ||
		db_do(db, e, sql, 0, NULL) ? -1 : 0;

	db_do(db, NULL, "RESET statement_timeout", 0, NULL);
	db_do(db, NULL, "RESET client_min_messages", 0, NULL);
	return rc;
}

int vacuum_run(struct pass *p, struct err *e)
{
	for (enum emptied t = 0; t < EMPTIED && pass_goes_on(p); t++) {
		int large = p->emptied[t] ? is_large_part(p, t, e) : 0;

		if (large < 0 || (large && vacuum(p->db, tables[t].vacuum, e)))
			return -1;
	}
	return 0;
}
