/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "client/cred.h"
#include "store/db.h"
#include "encode.h"
#include "store/document.h"

/*
 * Group commit of exports: each waits until the transaction with its batch is over. One disk flush serves all exports
 * that arrived meanwhile, so a commit is cheap under load and immediate without load. Called by http/exports.c.
 */
struct committer;
/* Everything passed is borrowed until committer_stop. */
struct committer *committer_start(struct db_pool *pool, const struct settings *settings, struct bases *b,
				  struct verified_cache *s, unsigned threads, struct err *e);
void committer_stop(struct committer *c);

/* The result of an export, for its acknowledgement. */
struct commit_receipt {
	char shape[SHAPE_NAME];
	const char *stored;	/* "base", "fields", "patch", or "known": nothing new was stored. A constant. */
	size_t stored_bytes, xml_bytes;
	bool moved;		/* new node or new shape: the snapshot changes */
	bool drifted;		/* it newly differs from its class */
	int class;
	uint64_t last;		/* COMMIT_STALE: the sequence number that the next must exceed */
};

enum commit_result {
	COMMIT_OK,
	COMMIT_ABSENT,	/* not the node's last export, or what is stored of it cannot be rebuilt */
	COMMIT_STALE,	/* seq does not exceed the last of that boot, which is in out->last */
	COMMIT_CLASS,	/* the node is in another class, out->class: encode again for it */
	COMMIT_QUOTA,	/* the host's daily quota is used up (gate.h) */
	COMMIT_GONE,	/* the database lacks the layout by which it was encoded: encode again */
	COMMIT_FAILED,	/* PostgreSQL failed; when the connection broke, the export may be committed all the same */
};

/* An export, from its request to its reply. The first four are the caller's; all that they point to is borrowed. */
struct commit_request {
	const struct claim *claim;
	const char *host;		/* the sender's address, or NULL (peer_host) */
	const struct encoded *encoded;	/* NULL: the node booted with its last export */
	void (*done)(struct commit_request *d);	/* called by a thread of the committer, which it must not keep */
	enum commit_result result;
	struct commit_receipt receipt;	/* unless COMMIT_FAILED */
	struct err err;			/* COMMIT_FAILED */
	/* Internal: */
	unsigned action;
	bool unreadable;	/* what is stored cannot be rebuilt; err has the reason */
	struct commit_request *next;
};

/*
 * Store an encoded export, or record a boot, with the next batch, then call done. COMMIT_OK only after COMMIT, and
 * after PostgreSQL returned the very bytes; for an unchanged export only when the stored document can be rebuilt
 * (store/document.h). One that cannot is recorded in the table unreadable, and repaired when the same document is sent
 * again.
 */
void commit_export(struct committer *c, struct commit_request *d);

/* For /metrics: since the start. */
struct commit_counts {
	unsigned long long batches, kept, known, stale, failed;
};
void committer_counts(struct committer *c, struct commit_counts *out);
