/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "vacuum.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MIN "1000"		/* dead ones that are worth it, and the part of the table that must be dead */
#define PART "10"

/*
 * Nodes that boot in no order leave the leaves of their index two thirds full, a fifth of what a node costs. A tuple of it is 8 bytes
 * and the name, each to a multiple of 8, and 4 more (storage/itup.h); full leaves are filled to nine tenths. Small indexes are not
 * worth the lock.
 */
#define LOOSE_INDEX "SELECT 1 FROM pg_class t JOIN pg_stats s ON s.tablename = t.relname AND s.attname = 'name'" \
	" WHERE t.oid = 'node'::regclass AND t.reltuples > 10000" \
	" AND pg_relation_size('node_pkey') > 1.2 * t.reltuples * (12 + 8 * ceil(s.avg_width / 8.0)) / 0.9"
#define TIGHTEN "REINDEX INDEX node_pkey"
#define INSUFFICIENT_PRIVILEGE "42501"

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

static int tighten(struct pass *p, struct err *e)
{
	char one[DB_KEY];
	int loose = db_key(p->db, one, e, LOOSE_INDEX, 0, NULL);

	if (loose <= 0 || vacuum(p->db, TIGHTEN, e) == 0)
		return loose < 0 ? -1 : 0;
	return strcmp(db_state(p->db), INSUFFICIENT_PRIVILEGE) ? -1 : 0;
}

int vacuum_run(struct pass *p, struct err *e)
{
	for (enum emptied t = 0; t < EMPTIED && pass_goes_on(p); t++) {
		int large = p->emptied[t] ? is_large_part(p, t, e) : 0;

		if (large < 0 || (large && vacuum(p->db, tables[t].vacuum, e)))
			return -1;
	}
	return p->full ? tighten(p, e) : 0;
}
