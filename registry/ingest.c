/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "ingest.h"

#include <string.h>
#include <sys/resource.h>
#include <strings.h>

#include "base/log.h"
#include "gate.h"
#include "topo/canon.h"
#include "topo/pack.h"
#include "upkeep.h"

#define EXPORTS_NICE 5
#define PLACINGS 3	/* of a document, when its node turns out to be of another class, or its base to be gone */

int ingest_admit(struct call *c)
{
	/* Of this thread, which serves one connection: an export can wait, people who read while a cluster boots should not. */
	setpriority(PRIO_PROCESS, 0, EXPORTS_NICE);
	if (call_check_credential(c))
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
	if (r->drifted)
		upkeep_nudge(c->service->upkeep);
	if (!strcmp(r->stored, "patch"))
		upkeep_patched(c->service->upkeep);
	/* Already stored: an agent that gets no acknowledgement asks again, and finds its document known. */
	c->reply.ack = cred_sign(k, c->signer, c->service->settings.munge_socket, &e);
	if (!c->reply.ack) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
		return;
	}
	if (strcmp(r->stored, "known"))
		log_info("%s: shape %s, %s, %zu bytes for %zu%s", c->node, r->shape, r->stored, r->stored_bytes, r->xml_bytes,
			 r->drifted ? "; it differs from its class" : "");
	call_json(c, 200, json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I}", "node", k->node, "boot_id", k->boot_id,
				    "seq", (json_int_t) k->seq, "sha256", k->sha256, "shape", r->shape, "stored", r->stored,
				    "stored_bytes", (json_int_t) r->stored_bytes, "xml_bytes", (json_int_t) r->xml_bytes));
}

static void answer(struct call *c, enum commit_result rc, const struct receipt *r, const struct err *e)
{
	switch (rc) {
	case COMMIT_OK:
		acknowledge(c, r);
		break;
	case COMMIT_ABSENT:
		call_json(c, 202, json_pack("{s:s, s:i}", "send", "topology", "spread", (int) gate_window(c->service->gate)));
		break;
	case COMMIT_STALE:
		call_fail(c, 409, "%s: sequence number %llu is not above the last of this boot", c->node,
			  (unsigned long long) c->claim.seq);
		break;
	case COMMIT_CLASS:
	case COMMIT_GONE:
		call_fail(c, 503, "%s: what it is compared with changes this moment", c->node);
		break;
	case COMMIT_FAILED:
		call_fail(c, 503, "%s: %s", c->node, e->text);
		break;
	}
}

void ingest_boot(struct call *c)
{
	struct receipt r;
	struct err e;
	enum commit_result rc = commit_export(c->service->committer, &c->claim, NULL, &r, &e);

	answer(c, rc, &r, &e);
}

/* The length was signed, so that a bomb goes off at the size that its node stands for. 0, or -1 with the reply filled. */
static int unzip(struct call *c, struct buf *xml)
{
	char sha256[HASH_HEX];
	struct err e;

	if (zip_open(c->body.data ? c->body.data : "", c->body.len, c->claim.length, xml, &e))
		return call_fail(c, 422, "%s: %s", c->node, e.text);
	hash_hex(xml->data, xml->len, sha256);
	if (xml->len != c->claim.length || strcmp(sha256, c->claim.sha256))
		return call_fail(c, 422, "%s: the body is not the document that was signed", c->node);
	return 0;
}

static int place(struct call *c, int class, const struct buf *xml, struct placed *out)
{
	static const unsigned status[] = { [PLACE_REFUSED] = 422, [PLACE_FAILED] = 503 };
	const struct service *s = c->service;
	struct err e;
	enum place_result rc = place_document(s->bases, s->pool, s->parser, c->node, class, xml, out, &e);

	if (rc == PLACE_OK)
		return 0;
	if (rc == PLACE_REFUSED)
		log_warning("%s", e.text);
	return call_fail(c, status[rc], "%s", e.text);
}

/* The document is held only while it is placed: whoever waits for the disk holds what is kept of it. 0, or -1 with the reply filled. */
static int read_and_place(struct call *c, int class, struct placed *out)
{
	struct buf xml = {0};
	int rc;

	if (gate_enter(c->service->gate))
		return call_fail(c, 503, "%s: too many documents at once", c->node);
	rc = unzip(c, &xml) || place(c, class, &xml, out) ? -1 : 0;
	buf_free(&xml);
	gate_leave(c->service->gate);
	return rc;
}

void ingest_topology(struct call *c)
{
	enum commit_result rc = COMMIT_CLASS;
	struct receipt r = {0};
	struct err e;

	for (int i = 0; i < PLACINGS && (rc == COMMIT_CLASS || rc == COMMIT_GONE); i++) {
		struct placed placed = {0};

		if (read_and_place(c, r.class, &placed))
			return;
		rc = commit_export(c->service->committer, &c->claim, &placed, &r, &e);
		if (rc == COMMIT_GONE)
			shelf_drop(bases_shelf(c->service->bases), placed.base);
		placed_free(&placed);
	}
	answer(c, rc, &r, &e);
}
