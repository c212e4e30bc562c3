/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "store.h"
#include "topo/canon.h"

#define BUSY_PER_SECOND 32	/* exports that a second takes, for the window over which nodes spread theirs */

static int check_credential(struct call *c)
{
	static const char scheme[] = "Munge ";
	struct err e;

	if (!c->authorization || strncasecmp(c->authorization, scheme, sizeof(scheme) - 1))
		return call_fail(c, 401, "%s: the request has no 'Authorization: Munge' credential", c->node);
	if (cred_check(c->authorization + sizeof(scheme) - 1, c->service->settings.munge_socket, &c->claim, &c->signer, &e))
		return call_fail(c, errno == EHOSTDOWN ? 503 : 401, "%s: %s", c->node, e.text);
	return 0;
}

int ingest_admit(struct call *c)
{
	if (check_credential(c))
		return -1;
	if (c->signer != 0)
		return call_fail(c, 403, "%s: signed by uid %u, and only root may export a node", c->node, (unsigned) c->signer);
	if (strcmp(c->claim.node, c->node))
		return call_fail(c, 403, "%s: the credential was signed for node %s", c->node, c->claim.node);
	if (c->claim.length > CANON_MAX_BYTES)
		return call_fail(c, 413, "%s: %llu bytes of XML, at most %u are allowed", c->node,
				 (unsigned long long) c->claim.length, CANON_MAX_BYTES);
	if (c->claim.seq > INT64_MAX)
		return call_fail(c, 400, "%s: the sequence number is out of range", c->node);
	return 0;
}

int ingest_admit_zstd(struct call *c)
{
	if (!c->encoding || strcasecmp(c->encoding, "zstd"))
		return call_fail(c, 415, "%s: the body must be zstd (Content-Encoding)", c->node);
	return ingest_admit(c);
}

static void acknowledge(struct call *c, const struct receipt *r)
{
	const struct claim *k = &c->claim;
	struct err e;

	if (r->moved)
		publisher_nudge(c->service->publisher);
	/* Already stored: an agent that gets no acknowledgement asks again, and finds its document known. */
	c->reply.ack = cred_sign(k, c->signer, c->service->settings.munge_socket, &e);
	if (!c->reply.ack) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
		return;
	}
	log_info("%s: shape %s, %s, %ld bytes for %ld", c->node, r->shape, r->stored, r->stored_bytes, r->xml_bytes);
	call_json(c, 200, json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I}", "node", k->node, "boot_id", k->boot_id,
				    "seq", (json_int_t) k->seq, "sha256", k->sha256, "shape", r->shape, "stored", r->stored,
				    "stored_bytes", (json_int_t) r->stored_bytes, "xml_bytes", (json_int_t) r->xml_bytes));
}

static void answer(struct call *c, enum store_result rc, const struct receipt *r, const struct err *e)
{
	switch (rc) {
	case STORE_OK:
		acknowledge(c, r);
		break;
	case STORE_ABSENT:
		call_json(c, 202, json_pack("{s:s, s:i}", "send", "topology", "spread", (int) (c->busy / BUSY_PER_SECOND)));
		break;
	case STORE_STALE:
		call_fail(c, 409, "%s: sequence number %llu is not above the last of this boot", c->node,
			  (unsigned long long) c->claim.seq);
		break;
	case STORE_FAILED:
		call_fail(c, 503, "%s: %s", c->node, e->text);
		break;
	}
}

static void keep(struct call *c, const struct parsed *d)
{
	struct db *db = call_db(c);
	struct receipt r;
	struct err e;
	enum store_result rc;

	if (!db)
		return;
	rc = store_export(db, &c->claim, d, &r, &e);
	db_give(c->service->pool, db);
	answer(c, rc, &r, &e);
}

void ingest_boot(struct call *c)
{
	keep(c, NULL);
}

void ingest_topology(struct call *c)
{
	static const unsigned status[] = { [PARSER_REFUSED] = 422, [PARSER_FAILED] = 503 };
	struct parsed d;
	struct err e;
	enum parser_result rc = parser_read(c->service->parser, c->node, &c->body, c->claim.length, c->claim.sha256, &d, &e);

	if (rc != PARSER_OK) {
		if (rc == PARSER_REFUSED)
			log_warning("%s", e.text);
		call_fail(c, status[rc], "%s", e.text);
		return;
	}
	keep(c, &d);
	parsed_free(&d);
}
