/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <stdlib.h>

#include "base/log.h"
#include "upkeep/upkeep.h"

int forget_admit(struct call *c)
{
	return admin_admit(c, "remove a node");
}

#define HOLD "SELECT encode(sha256, 'hex') FROM node WHERE name = $1 FOR UPDATE"
/* Drift, facts and measurements refer to the node's row and are deleted with it. */
#define FORGET "WITH gone AS (DELETE FROM node WHERE name = $1)," \
	" damaged AS (DELETE FROM unreadable WHERE node = $1)," \
	" adapters AS (UPDATE fabric_adapter SET node = NULL, device = NULL WHERE node = $1)," \
	" old AS (DELETE FROM past WHERE node = $1 RETURNING 1) SELECT count(*) FROM old"
/* If another node has the same GUID, the adapter is now that node's: upkeep matches what is newer than its last run. */
#define REMATCH "UPDATE registry SET matched = least(matched, (SELECT max(since) FROM node) - interval '1 second')" \
	" WHERE EXISTS (SELECT FROM fabric)"

/* The number of former exports in `past`: 0, or -1 with the reply filled. */
static int delete_node(struct call *c, struct db *db, char past[static DB_KEY])
{
	PGresult *r = NULL;
	struct err e;

	if (db_execute(db, &e, "BEGIN", 0, NULL))
		return call_fail(c, 503, "%s: %s", c->node, e.text);
	if (!(r = admin_query_node(c, db, HOLD)))
		return -1;
	PQclear(r);
	if (db_query_key(db, past, &e, FORGET, 1, &DB_TEXT(c->node)) != 1 || db_execute(db, &e, REMATCH, 0, NULL) ||
	    db_execute(db, &e, "COMMIT", 0, NULL))
		return call_fail(c, 503, "%s: %s", c->node, e.text);
	return 0;
}

void forget_node(struct call *c)
{
	struct db *db = call_acquire_writer(c);
	char past[DB_KEY];

	if (db && delete_node(c, db, past) == 0) {
		log_info("%s: removed by uid %u, with %s former exports", c->node, (unsigned) c->signer, past);
		publisher_request(c->service->publisher);
		upkeep_notify_costs(c->service->upkeep);
		call_json(c, 200, json_pack("{s:s, s:I}", "node", c->node, "history",
					    (json_int_t) strtoll(past, NULL, 10)));
	}
	/* Rolls back what was not committed. */
	db_release(c->service->pool, db);
}
