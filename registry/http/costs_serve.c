/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <strings.h>

#include "base/log.h"
#include "peer.h"
#include "store/costs_store.h"
#include "upkeep/upkeep.h"

static const unsigned status_of[] = { [COSTS_ABSENT] = 404, [COSTS_BAD] = 422, [COSTS_FAILED] = 503 };

int costs_admit(struct call *c)
{
	return call_check_zstd(c) || call_check_credential(c) || admin_check_claim(c) ||
	       call_check_length(c, HWBENCH_JSON_MAX) ? -1 : 0;
}

int costs_admit_peer(struct call *c)
{
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
			call_fail(c, status_of[rc], "%s", e.text);
		} else {
			log_info("%s: costs measured, sent by uid %u", c->node, (unsigned) c->signer);
			upkeep_notify_costs(c->service->upkeep);
			call_json(c, 200, json_pack("{s:s, s:I, s:I}", "node", c->node, "cores",
						    (json_int_t) b.cores, "numa_nodes", (json_int_t) b.numas));
		}
	}
	db_release(c->service->pool, db);
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
	call_release(c, db);
}
