/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include "base/log.h"
#include "delta/pack.h"
#include "fabric/read/json.h"
#include "ingest/gate.h"
#include "store/costs_store.h"
#include "store/fabric_store.h"
#include "store/json_rows.h"
#include "upkeep/upkeep.h"
#include "peer.h"

/*
 * Notes
 *
 * No data. Called in a worker, with the whole body.
 */
#define ENTRIES "100"

static const unsigned status_of[] = { [FABRIC_ABSENT] = 404, [FABRIC_BAD] = 400, [FABRIC_FAILED] = 503 };

static void fabric_store(struct call *c, const struct fabric *f)
{
	struct db *db = call_acquire_writer(c);
	unsigned version;
	bool changed;
	struct err e;

	if (!db)
		return;
	if (fabric_save(db, f, c->signer, &version, &changed, &e)) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	} else {
		if (changed) {
			log_info("fabric: version %u, imported by uid %u", version, (unsigned) c->signer);
			publisher_request(c->service->publisher);
		}
		call_json(c, 200, json_pack("{s:I, s:b, s:I, s:I, s:I, s:I}", "version", (json_int_t) version,
					    "changed", changed,
					    "planes", (json_int_t) f->nplanes, "switches", (json_int_t) f->nswitches,
					    "hosts", (json_int_t) (f->nnodes - f->nswitches), "links",
						    (json_int_t) f->nlinks));
	}
	db_release(db);
}

void fabric_put(struct call *c)
{
	struct gate_slot slot = { .node = c->node };
	struct fabric *f = NULL;
	struct err e;
	json_t *j;

	if (gate_enter(c->service->gate, &slot) != GATE_ENTERED) {
		call_fail(c, 503, "%s: too many documents are being processed; try again later", c->node);
		return;
	}
	if ((j = call_body_json(c)) && !(f = fabric_of_json(j, c->node, &e)))
		call_fail(c, 422, "%s", e.text);
	else if (f)
		fabric_store(c, f);
	json_decref(j);
	fabric_free(f);
	gate_leave(c->service->gate, &slot);
}

static void reply_document(struct call *c, const char *type, enum fabric_result rc, struct buf *body,
			   const struct err *e)
{
	if (rc == FABRIC_OK)
		call_body(c, type, body);
	else
		call_fail(c, status_of[rc], "%s", e->text);
	buf_free(body);
}

void read_fabric(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf body = {0};
	struct err e;

	if (db)
		reply_document(c, "application/json", fabric_document(db, call_param(c, "at"), &body, &e), &body, &e);
	db_release(db);
}

void read_fabric_levels(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf body = {0};
	struct err e;

	if (db)
		reply_document(c, "text/plain; charset=utf-8", fabric_levels(db, &body, &e), &body, &e);
	db_release(db);
}

static const char history_sql[] = JSON_ROWS("SELECT version, " RFC3339_US("since") " AS since, " RFC3339_US("until")
	" AS until, signer, came, went FROM topiary_fabric ORDER BY version DESC LIMIT $1::integer + 1");

void read_fabric_history(struct call *c)
{
	const char *limit = call_param(c, "limit") ? call_param(c, "limit") : ENTRIES;
	struct db *db = call_acquire_reader(c);
	struct buf out = {0};
	struct err e;
	PGresult *r = db ? db_query(db, &e, history_sql, 1, &DB_TEXT(limit)) : NULL;
	int n = r ? PQntuples(r) : 0, shown = n > atoi(limit) ? n - 1 : n;

	if (r) {
		buf_puts(&out, "{\"history\":[");
		for (int i = 0; i < shown; i++)
			buf_printf(&out, "%s%s", i ? "," : "", PQgetvalue(r, i, 0));
		buf_printf(&out, "],\"truncated\":%s}\n", n > shown ? "true" : "false");
		call_body(c, "application/json", &out);
	} else if (db) {
		call_fail(c, 503, "fabric: %s", e.text);
	}
	PQclear(r);
	db_release(db);
}

/* --- costs as measured --- */

static const unsigned costs_status[] = { [COSTS_ABSENT] = 404, [COSTS_BAD] = 422, [COSTS_FAILED] = 503 };

int costs_admit(struct call *c)
{
	if (call_check_credential(c) || admin_check_claim(c))
		return -1;
	if (admin_check(c))
		return 0;
	if (c->signer == 0)
		return peer_admit(c);
	log_warning("%s: uid %u may not store what was measured of it", c->node, (unsigned) c->signer);
	return call_fail(c, 403, "%s: uid %u is neither root of the node nor one of Admins on a host of AdminHosts:"
				 " only they may store what was measured of it", c->node, (unsigned) c->signer);
}

void costs_put(struct call *c)
{
	json_t *j = call_body_json(c);
	struct hwbench b = {0};
	enum costs_result rc;
	struct db *db = NULL;
	struct err e;

	if (!j)
		return;
	if (hwbench_from_json(&b, j, &e)) {
		call_fail(c, 422, "%s: %s", c->node, e.text);
	} else if ((db = call_acquire_writer(c))) {
		if ((rc = costs_save(db, c->node, c->signer, &b, &e)) != COSTS_OK) {
			call_fail(c, costs_status[rc], "%s", e.text);
		} else {
			log_info("%s: costs measured, sent by uid %u", c->node, (unsigned) c->signer);
			upkeep_notify(c->service->upkeep, UPKEEP_ON_COSTS);
			call_json(c, 200, json_pack("{s:s, s:I, s:I}", "node", c->node, "cores",
						    (json_int_t) b.cores, "numa_nodes", (json_int_t) b.numas));
		}
	}
	db_release(db);
	hwbench_free(&b);
	json_decref(j);
}

void costs_read(struct call *c)
{
	struct db *db = call_acquire_reader(c);
	struct buf text = {0};
	struct err e;

	if (db && costs_text(db, &text, &e))
		call_fail(c, 503, "costs: %s", e.text);
	else if (db)
		call_body(c, "text/plain; charset=utf-8", &text);
	buf_free(&text);
	db_release(db);
}
