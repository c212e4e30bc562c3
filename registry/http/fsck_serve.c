/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "upkeep/fsck.h"
#include "ingest/gate.h"

static int claim_admit(struct call *c, const char *claim, const char *what)
{
	const char *after = call_param(c, "after");
	char sha256[HASH_HEX];

	snprintf(c->node, sizeof(c->node), "%s", claim);
	if (admin_admit(c, what))
		return -1;
	hash_hex(after ? after : "", after ? strlen(after) : 0, sha256);
	return strcmp(sha256, c->claim.sha256) ? call_fail(c, 403, "%s: the credential was signed for other documents",
							   c->node) : 0;
}

int fsck_admit(struct call *c)
{
	return claim_admit(c, FSCK_CLAIM, "check stored documents");
}

int fsck_repair_admit(struct call *c)
{
	return claim_admit(c, FSCK_REPAIR_CLAIM, "repair stored documents");
}

static void run_fsck(struct call *c, struct db *db)
{
	const char *after = call_param(c, "after") ? call_param(c, "after") : "";
	struct fsck f = { .bases = c->service->bases, .db = db, .parser = c->service->parser,
			  .record = !strcmp(c->node, FSCK_REPAIR_CLAIM) };
	char stored[DB_KEY];	/* for progress displays */
	struct err e;

	if (db_query_key(db, stored, &e, "SELECT (SELECT count(*) FROM node) + (SELECT count(*) FROM past)", 0,
			 NULL) != 1 || fsck_some(&f, after, &e))
		call_fail(c, strncmp(db_state(db), "22", 2) ? 503 : 400, "%s: %s", c->node, e.text);
	else
		call_json(c, 200, json_pack("{s:I, s:I, s:o, s:s?}",
					    "documents", (json_int_t) strtoll(stored, NULL, 10),
					    "checked", (json_int_t) f.checked,
					    "unreadable", f.unreadable, "next", *f.next ? f.next : NULL));
}

void fsck_post(struct call *c)
{
	struct gate_slot slot = { .node = c->node };
	struct db *db;

	if (gate_enter(c->service->gate, &slot) != GATE_ENTERED) {
		call_fail(c, 503, "%s: too many documents are being processed; try again later", c->node);
		return;
	}
	if ((db = call_acquire_writer(c)))
		run_fsck(c, db);
	db_release(c->service->pool, db);
	gate_leave(c->service->gate, &slot);
}
