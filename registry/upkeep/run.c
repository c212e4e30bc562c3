/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "run.h"

/*
 * Notes
 *
 * What the steps of a run share. A run belongs to upkeep's thread; the lock of `background` is of its `stop` alone. A
 * step pauses only between transactions, so that it holds no row meanwhile.
 */
#define REST_MIN 0.01		/* seconds */
#define REST_MAX 1.0

bool upkeep_continues(const struct upkeep_run *p)
{
	bool stop;

	pthread_mutex_lock(&p->background->lock);
	stop = p->background->stop;
	pthread_mutex_unlock(&p->background->lock);
	return !stop;
}

bool upkeep_pause(struct upkeep_run *p)
{
	double begin = clock_now(), rest = begin - p->worked_since;
	bool go_on = background_pause(p->background, begin + (rest < REST_MIN ? REST_MIN :
							      rest > REST_MAX ? REST_MAX : rest));

	p->worked_since = clock_now();
	return go_on;
}

/* --- the last step: the space of rows that were moved or deleted --- */

#define ROWS_MIN "1000"		/* dead rows that are worth it, and the part of the table that must be dead */
#define PART "10"

/*
 * Nodes boot in random order, which leaves the leaves of the index two thirds full, a fifth of a node's cost. An index
 * tuple is 8 bytes and the name, each padded to a multiple of 8, and 4 more (storage/itup.h); full leaves have a fill
 * factor of 0.9. Small indexes are not worth the lock.
 */
#define LOOSE_INDEX "SELECT 1 FROM pg_class t JOIN pg_stats s ON s.tablename = t.relname AND s.attname = 'name'" \
	" WHERE t.oid = 'node'::regclass AND t.reltuples > 10000" \
	" AND pg_relation_size('node_pkey') > 1.2 * t.reltuples * (12 + 8 * ceil(s.avg_width / 8.0)) / 0.9"
#define REINDEX_NODE "REINDEX INDEX node_pkey"
#define INSUFFICIENT_PRIVILEGE "42501"

static const struct {
	const char *name, *vacuum;
} tables[EMPTIED] = {
	[IN_NODE] = { "node", "VACUUM (SKIP_LOCKED) node" },
	[IN_NODE_FACT] = { "node_fact", "VACUUM (SKIP_LOCKED) node_fact" },
	[IN_PAST] = { "past", "VACUUM (SKIP_LOCKED) past" },
};

/* The dead rows are worth it. */
#define IS_LARGE_PART "SELECT 1 FROM pg_class WHERE oid = $1::regclass" \
	" AND $2::bigint > greatest(" ROWS_MIN ", reltuples / " PART ")"

/* PostgreSQL warns of tables that it may not or cannot vacuum now; those warnings are not wanted. */
static int vacuum_table(struct db *db, const char *sql, struct err *e)
{
	int rc = db_execute(db, e, "SET client_min_messages = error", 0, NULL) || db_limit(db, 0, e) ||
		db_execute(db, e, sql, 0, NULL) ? -1 : 0;

	db_limit(db, DB_SECONDS, NULL);
	db_execute(db, NULL, "RESET client_min_messages", 0, NULL);
	return rc;
}

int vacuum_run(struct upkeep_run *p, struct err *e)
{
	char one[DB_KEY];
	int loose;

	for (enum upkeep_emptied t = 0; t < EMPTIED && upkeep_continues(p); t++) {
		int large = !p->emptied[t] ? 0 : db_query_key(p->db, one, e, IS_LARGE_PART, 2, (struct db_value[]){
				DB_TEXT(tables[t].name), DB_NUMBER(p->emptied[t]) });

		if (large < 0 || (large && vacuum_table(p->db, tables[t].vacuum, e)))
			return -1;
	}
	loose = p->full ? db_query_key(p->db, one, e, LOOSE_INDEX, 0, NULL) : 0;
	if (loose <= 0 || vacuum_table(p->db, REINDEX_NODE, e) == 0)
		return loose < 0 ? -1 : 0;
	return strcmp(db_state(p->db), INSUFFICIENT_PRIVILEGE) ? -1 : 0;
}
