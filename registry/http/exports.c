/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <assert.h>

#include "base/log.h"
#include "ingest/gate.h"
#include "store/identity.h"
#include "peer.h"
#include "hwxml/canon.h"
#include "delta/pack.h"
#include "upkeep/upkeep.h"

/*
 * Notes
 *
 * An export belongs to one thread at a time: a worker until it is queued, a committer until export_done, then a worker
 * again if it must be encoded anew. Whoever finishes it frees it and calls done, after which the call is gone.
 */
#define DUPLICATE_SECONDS 1
/* of a document, when the node turns out to be in another class or the base was deleted */
#define ENCODE_ATTEMPTS 4

int export_admit(struct call *c)
{
	if (call_check_credential(c))
		return -1;
	if (c->signer != 0)
		return call_fail(c, 403, "%s: signed by uid %u, but only root may export a node", c->node,
				 (unsigned) c->signer);
	if (strcmp(c->claim.node, c->node))
		return call_fail(c, 403, "%s: the credential was signed for node %s", c->node, c->claim.node);
	if (!*c->claim.key)
		return call_fail(c, 401, "%s: the credential has no key for the acknowledgement: topiaryd and"
					 " topiary-agent must be of the same release", c->node);
	if (c->claim.seq > INT64_MAX)
		return call_fail(c, 400, "%s: the sequence number is out of range", c->node);
	return peer_admit(c);
}

int export_admit_document(struct call *c)
{
	char host[INET6_ADDRSTRLEN];
	unsigned pause;

	if (export_admit(c))
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
	struct claim as_signed = *k;
	struct buf text = {0};

	if (r->moved)
		publisher_request(c->service->publisher);
	if (r->drifted)
		upkeep_notify(c->service->upkeep, UPKEEP_ON_DRIFT);
	if (!strcmp(r->stored, "patch"))
		upkeep_notify(c->service->upkeep, UPKEEP_ON_PATCH);
	/* Already stored: an agent without an acknowledgement repeats the request, and its document is known then. */
	memcpy(as_signed.node, c->signed_name, sizeof(as_signed.node));
	if (claim_ack(&as_signed, c->reply.ack)) {
		call_fail(c, 503, "%s: the acknowledgement cannot be computed", c->node);
		return;
	}
	if (!strcmp(r->stored, "known"))
		log_debug("%s: hash known, nothing to store", c->node);
	else
		log_info("%s: shape %s, stored as %s, %zu of %zu bytes%s", c->node, r->shape, r->stored,
			 r->stored_bytes, r->xml_bytes, r->drifted ? "; new drift from its class" : "");
	buf_printf(&text, "{\"node\":\"%s\",\"boot_id\":\"%s\",\"seq\":%" PRIu64 ",\"sha256\":\"%s\"", k->node,
		   k->boot_id, k->seq, k->sha256);
	buf_printf(&text, ",\"shape\":\"%s\",\"stored\":\"%s\",\"stored_bytes\":%zu,\"xml_bytes\":%zu}\n", r->shape,
		   r->stored, r->stored_bytes, r->xml_bytes);
	call_body(c, "application/json", &text);
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

/* An export from its request to its reply; some of its work is a worker's, some the committer's. */
struct export {
	struct commit_request commit;
	struct call *call;
	char host[INET6_ADDRSTRLEN];
	unsigned attempts;
	struct encoded encoded;
	struct buf xml;		/* decompressed */
	size_t held;		/* bytes acquired for it from the budget of documents */
};

static void export_finish(struct export *x)
{
	struct call *c = x->call;

	server_budget_release(&c->service->documents, x->held);
	buf_free(&x->xml);
	encoded_free(&x->encoded);
	free(x);
	c->done(c);
}

/*
 * In a slot of the gate, decompressed first unless it is held: 0, or -1 with the reply filled. While the export waits
 * for its transaction, the document is kept for another attempt within a budget: any number of exports may wait there,
 * outside the gate.
 */
static int read_and_encode(struct export *x)
{
	struct call *c = x->call;
	struct service *s = c->service;
	struct gate_slot slot = { .node = c->node };
	enum encode_result encoded;
	enum gate_result entered;
	struct err e;
	int rc;

	peer_address(c, slot.address);
	if ((entered = gate_enter(s->gate, &slot)) != GATE_ENTERED) {
		rc = entered == GATE_DUPLICATE ?
			call_fail(c, 429, "%s: another document of this node is being processed", c->node) :
			call_fail(c, 503, "%s: too many documents are being processed; try again later", c->node);
		if (entered == GATE_DUPLICATE)
			c->reply.retry_after = DUPLICATE_SECONDS;
		return rc;
	}
	rc = x->held ? 0 : call_body_text(c, &x->xml);
	if (rc == 0) {
		encoded = encode_document(&s->settings, s->bases, s->pool, s->parser, c->node, x->commit.host,
					  x->commit.receipt.class, &x->xml, &x->encoded, &e);
		if (encoded == ENCODE_REFUSED)
			log_warning("%s", e.text);
		rc = encoded == ENCODE_OK ? 0 : encoded == ENCODE_QUOTA ? fail_quota(c) :
			call_fail(c, encoded == ENCODE_REFUSED ? 422 : 503, "%s", e.text);
	}
	if (!x->held && server_budget_acquire(&s->documents, x->xml.len))
		x->held = x->xml.len;
	if (!x->held)
		buf_free(&x->xml);
	if (c->reply.status == 422)
		gate_refused(s->gate, x->commit.host ?: c->node);
	gate_leave(s->gate, &slot);
	return rc;
}

/* In a worker. */
static void encode_and_commit(struct call *c)
{
	struct service *s = c->service;
	struct export *x = c->state;

	/* The cache differs from the database: upkeep deleted bases, or a dump was restored under open connections. */
	if (x->commit.result == COMMIT_GONE && x->attempts) {
		struct db *db = db_acquire(s->pool, NULL);

		if (!db || identity_check(s->identity, db, false, NULL) || bases_verify(s->bases, db, NULL))
			bases_clear(s->bases);
		db_release(db);
	}
	assert(x->attempts < ENCODE_ATTEMPTS);
	x->attempts++;
	x->commit.encoded = &x->encoded;
	if (read_and_encode(x))
		export_finish(x);
	else
		commit_export(s->committer, &x->commit);
}

static void export_done(struct commit_request *d)
{
	struct export *x = (struct export *) ((char *) d - offsetof(struct export, commit));
	char text[320];

	if ((d->result == COMMIT_CLASS || d->result == COMMIT_GONE) && x->attempts < ENCODE_ATTEMPTS) {
		encoded_free(&x->encoded);
		if (x->call->run(x->call, encode_and_commit))
			return;
	}
	switch (d->result) {
	case COMMIT_OK:
		receipt_reply(x->call, &d->receipt);
		break;
	case COMMIT_ABSENT:
		call_json(x->call, 202, json_pack("{s:s, s:i}", "send", "topology", "spread",
					    (int) gate_window(x->call->service->gate)));
		break;
	case COMMIT_STALE:
		/* The agent continues from the last sequence number, whatever its clock says. */
		snprintf(text, sizeof(text), "%s: sequence number %" PRIu64 " is not above %" PRIu64 ", the last of"
			 " this boot", x->call->node, x->call->claim.seq, d->receipt.last);
		call_json(x->call, 409, json_pack("{s:s, s:I}", "error", text, "last", (json_int_t) d->receipt.last));
		break;
	case COMMIT_QUOTA:
		fail_quota(x->call);
		break;
	case COMMIT_CLASS:
	case COMMIT_GONE:
		call_fail(x->call, 503, "%s: its class or base is being changed; retry", x->call->node);
		break;
	case COMMIT_FAILED:
		call_fail(x->call, 503, "%s: %s", x->call->node, d->err.text);
		break;
	}
	export_finish(x);
}

/* NULL with the request finished. */
static struct export *export_new(struct call *c)
{
	struct export *x = calloc(1, sizeof(*x));

	if (!x) {
		call_fail(c, 503, "%s: out of memory", c->node);
		c->done(c);
		return NULL;
	}
	x->call = c;
	x->commit = (struct commit_request){ .claim = &c->claim, .host = peer_host(c, x->host), .done = export_done };
	return x;
}

void export_boot(struct call *c)
{
	struct export *x = export_new(c);

	if (x)
		commit_export(c->service->committer, &x->commit);
}

void export_topology(struct call *c)
{
	if ((c->state = export_new(c)))
		encode_and_commit(c);
}
