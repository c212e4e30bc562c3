/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <strings.h>

#include "base/log.h"
#include "ingest/gate.h"
#include "store/identity.h"
#include "peer.h"
#include "ingest/quota.h"
#include "hwxml/canon.h"
#include "delta/pack.h"
#include "upkeep/upkeep.h"

#define EXPORTS_NICE 5
#define DUPLICATE_SECONDS 1
/* of a document, when the node turns out to be in another class or the base was deleted */
#define ENCODE_ATTEMPTS 4

int export_admit(struct call *c)
{
	/* Lowers this thread, which serves one connection: exports yield to reads while a cluster boots. */
	setpriority(PRIO_PROCESS, 0, EXPORTS_NICE);
	if (call_check_credential(c))
		return -1;
	if (c->signer != 0)
		return call_fail(c, 403, "%s: signed by uid %u, but only root may export a node", c->node,
				 (unsigned) c->signer);
	if (strcmp(c->claim.node, c->node))
		return call_fail(c, 403, "%s: the credential was signed for node %s", c->node, c->claim.node);
	if (call_check_length(c, CANON_MAX_BYTES))
		return -1;
	if (c->claim.seq > INT64_MAX)
		return call_fail(c, 400, "%s: the sequence number is out of range", c->node);
	return 0;
}

int export_admit_zstd(struct call *c)
{
	char host[INET6_ADDRSTRLEN];
	unsigned pause;

	if (call_check_zstd(c) || export_admit(c))
		return -1;
	if (!(pause = gate_backoff(c->service->gate, peer_host(c, host) ?: c->node)))
		return 0;
	call_fail(c, 429, "%s: too many documents of this node were refused; retry in %u s", c->node, pause);
	c->reply.retry_after = pause;
	return -1;
}

static void receipt_reply(struct call *c, const struct commit_receipt *r)
{
	const struct claim *k = &c->claim;
	struct claim ack = *k;
	struct err e;

	if (r->moved)
		publisher_request(c->service->publisher);
	if (r->drifted)
		upkeep_notify_drift(c->service->upkeep);
	if (!strcmp(r->stored, "patch"))
		upkeep_notify_patch(c->service->upkeep);
	/* Already stored: an agent without an acknowledgement repeats the request, and its document is known then. */
	memcpy(ack.purpose, CLAIM_ACK, sizeof(CLAIM_ACK));
	memcpy(ack.node, c->signed_name, sizeof(ack.node));
	c->reply.ack = cred_sign(&ack, c->signer, c->service->settings.munge_socket, &e);
	if (!c->reply.ack) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
		return;
	}
	if (!strcmp(r->stored, "known"))
		log_debug("%s: hash known, nothing to store", c->node);
	else
		log_info("%s: shape %s, stored as %s, %zu of %zu bytes%s", c->node, r->shape, r->stored,
			 r->stored_bytes, r->xml_bytes, r->drifted ? "; new drift from its class" : "");
	call_json(c, 200, json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I}", "node", k->node, "boot_id", k->boot_id,
				    "seq", (json_int_t) k->seq, "sha256", k->sha256, "shape", r->shape, "stored",
					    r->stored,
				    "stored_bytes", (json_int_t) r->stored_bytes, "xml_bytes",
					    (json_int_t) r->xml_bytes));
}

/* The agent continues from the last sequence number, whatever its clock says. */
static void reply_stale(struct call *c, uint64_t last)
{
	char text[320];

	snprintf(text, sizeof(text), "%s: sequence number %" PRIu64 " is not above %" PRIu64 ", the last of this boot",
		 c->node, c->claim.seq, last);
	call_json(c, 409, json_pack("{s:s, s:I}", "error", text, "last", (json_int_t) last));
}

static int fail_quota(struct call *c)
{
	const struct service *s = c->service;

	if (peer_first_warning(s->peers, "quota", c->node))
		log_warning("%s: quota of 24 hours used up (NodeDocuments %u, NodeBytes %u MiB); its documents are"
			    " refused", c->node, s->settings.node_documents, s->settings.node_bytes);
	call_fail(c, 429, "%s: the node's quota of stored documents in 24 hours is used up", c->node);
	c->reply.retry_after = QUOTA_RETRY;
	return -1;
}

static void reply_result(struct call *c, enum commit_result rc, const struct commit_receipt *r, const struct err *e)
{
	switch (rc) {
	case COMMIT_OK:
		receipt_reply(c, r);
		break;
	case COMMIT_ABSENT:
		call_json(c, 202, json_pack("{s:s, s:i}", "send", "topology", "spread",
					    (int) gate_window(c->service->gate)));
		break;
	case COMMIT_STALE:
		reply_stale(c, r->last);
		break;
	case COMMIT_QUOTA:
		fail_quota(c);
		break;
	case COMMIT_CLASS:
	case COMMIT_GONE:
		call_fail(c, 503, "%s: its class or base is being changed; retry", c->node);
		break;
	case COMMIT_FAILED:
		call_fail(c, 503, "%s: %s", c->node, e->text);
		break;
	}
}

void export_boot(struct call *c)
{
	char host[INET6_ADDRSTRLEN];
	struct commit_receipt r;
	struct err e;
	enum commit_result rc = commit_export(c->service->committer, &c->claim, peer_host(c, host), NULL, &r, &e);

	reply_result(c, rc, &r, &e);
}

static int export_encode(struct call *c, int class, const struct buf *xml, struct encoded *out)
{
	static const unsigned status[] = { [ENCODE_REFUSED] = 422, [ENCODE_FAILED] = 503 };
	const struct service *s = c->service;
	char host[INET6_ADDRSTRLEN];
	struct err e;
	enum encode_result rc = encode_document(&s->settings, s->bases, s->pool, s->parser, c->node, peer_host(c, host),
						class, xml, out, &e);

	if (rc == ENCODE_OK)
		return 0;
	if (rc == ENCODE_QUOTA)
		return fail_quota(c);
	if (rc == ENCODE_REFUSED)
		log_warning("%s", e.text);
	return call_fail(c, status[rc], "%s", e.text);
}

/* Enter the gate: 0, or -1 with the reply filled. */
static int enter_gate(struct call *c, struct gate_slot *t)
{
	t->node = c->node;
	peer_address(c, t->address);
	switch (gate_enter(c->service->gate, t)) {
	case GATE_ENTERED:
		return 0;
	case GATE_DUPLICATE:
		call_fail(c, 429, "%s: another document of this node is being processed", c->node);
		c->reply.retry_after = DUPLICATE_SECONDS;
		return -1;
	case GATE_FULL:
		break;
	}
	return call_fail(c, 503, "%s: too many documents are being processed; try again later", c->node);
}

/* The decompressed document of an export. */
struct document {
	struct buf xml;
	size_t held;	/* bytes acquired from the budget of documents */
};

/*
 * While the export waits for its transaction, the document is kept for another attempt within a budget: any number of
 * exports may wait there, outside the gate.
 */
static void document_retain(struct call *c, struct document *d)
{
	if (!d->held && server_budget_acquire(&c->service->documents, d->xml.len))
		d->held = d->xml.len;
	if (!d->held)
		buf_free(&d->xml);
}

static void document_free(struct call *c, struct document *d)
{
	server_budget_release(&c->service->documents, d->held);
	buf_free(&d->xml);
}

/* Encode the document, decompressed first unless it is held, in a slot of the gate. 0, or -1 with the reply filled. */
static int read_and_encode(struct call *c, int class, struct document *d, struct encoded *out)
{
	char host[INET6_ADDRSTRLEN];
	struct gate_slot slot;
	int rc;

	if (enter_gate(c, &slot))
		return -1;
	rc = (!d->held && call_body_text(c, &d->xml)) || export_encode(c, class, &d->xml, out) ? -1 : 0;
	document_retain(c, d);
	if (c->reply.status == 422)
		gate_refused(c->service->gate, peer_host(c, host) ?: c->node);
	gate_leave(c->service->gate, &slot);
	return rc;
}

/* The cache differs from the database: upkeep deleted bases, or a dump was restored under open connections. */
static void revalidate_bases(struct call *c)
{
	struct service *s = c->service;
	struct db *db = db_acquire(s->pool, NULL);

	if (!db || identity_check(s->identity, db, false, NULL) || bases_verify(s->bases, db, NULL))
		bases_clear(s->bases);
	db_release(s->pool, db);
}

void export_topology(struct call *c)
{
	enum commit_result rc = COMMIT_CLASS;
	struct document document = {0};
	struct commit_receipt r = {0};
	char host[INET6_ADDRSTRLEN];
	struct err e;

	for (int i = 0; i < ENCODE_ATTEMPTS && (rc == COMMIT_CLASS || rc == COMMIT_GONE); i++) {
		struct encoded encoded = {0};

		if (read_and_encode(c, r.class, &document, &encoded))
			goto done;
		rc = commit_export(c->service->committer, &c->claim, peer_host(c, host), &encoded, &r, &e);
		if (rc == COMMIT_GONE)
			revalidate_bases(c);
		encoded_free(&encoded);
	}
	reply_result(c, rc, &r, &e);
done:
	document_free(c, &document);
}
