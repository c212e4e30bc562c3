/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_COMMIT_H
#define TOPIARY_REGISTRY_COMMIT_H

#include <stdbool.h>

#include "client/cred.h"
#include "db.h"
#include "place.h"

/*
 * Exports are committed many at a time: whoever has one waits until the transaction that it went into is over. The disk is asked once
 * for all that came meanwhile, so that under load a commit costs a node little, and without load no time is lost.
 */
struct committer;
struct committer *committer_start(struct db_pool *pool, unsigned threads, struct err *e);
void committer_stop(struct committer *c);

/* What the registry keeps of an export, for its acknowledgement. */
struct receipt {
	char shape[SHAPE_NAME];
	const char *stored;	/* "base", "fields", "patch", or "known": nothing new was kept. A constant. */
	size_t stored_bytes, xml_bytes;
	bool moved;		/* the node is new or has another shape: the snapshot changes */
	bool drifted;		/* it newly differs from its class */
	int class;
};

enum commit_result {
	COMMIT_OK,
	COMMIT_ABSENT,	/* not what that node exported last */
	COMMIT_STALE,	/* seq is not above the last of that boot */
	COMMIT_CLASS,	/* placed in another class than the node has, which is in out->class: to be placed anew in that */
	COMMIT_GONE,	/* the base that it was placed on is no more: to be placed anew */
	COMMIT_FAILED,	/* PostgreSQL, with an error; when the connection broke it may be committed all the same: asking again tells */
};

/*
 * Keep an export as placed, or, when placed is NULL, note that the node booted with what it exported last. COMMIT_OK only after
 * COMMIT, and after PostgreSQL gave back the very bytes.
 */
enum commit_result commit_export(struct committer *c, const struct claim *claim, const struct placed *placed, struct receipt *out,
				 struct err *e);

/* For /metrics: since the start. */
struct commit_counts {
	unsigned long long batches, kept, known, stale, failed;
};
void committer_counts(struct committer *c, struct commit_counts *out);

#endif
