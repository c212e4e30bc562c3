/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "upkeep_steps.h"

/*
 * Stores documents in another layout; the documents stay the same. A row is changed only after its new diff was decoded
 * and compared, and only while it is unchanged: a node that boots meanwhile is left alone and never waited for. Called
 * by the steps of upkeep.
 */

/* The documents to process. */
enum reencode_scope {
	SCOPE_PRESENT,	/* present exports of nodes */
	SCOPE_RECENT,		/* present exports since a time */
	SCOPE_DRIFTED,	/* present exports of nodes that drift since before a time */
	SCOPE_PAST,		/* former exports */
};

/* A decoded document. The strings are borrowed. */
struct reencode_document {
	const char *node, *since, *sha256;
	struct buf xml;		/* checked against the hash */
	size_t kept;		/* bytes of its present diff */
};

/* Rows to be moved from one layout. */
struct reencoding {
	enum reencode_scope scope;
	const char *from;	/* the layout */
	const char *time;	/* SCOPE_RECENT, SCOPE_DRIFTED: that time; NULL for any */
	bool clear_drift;		/* delete the drift of the rows moved */
	int (*each)(struct reencoding *m, const struct reencode_document *h, struct err *e);
	int (*after)(struct reencoding *m, struct err *e);	/* called after each batch; or NULL */
	void *user;		/* for each and after */
	unsigned n;
	unsigned long long made;
	bool whole;		/* after reencode_each: every document was processed, except bad ones */
	unsigned bad;		/* unreadable documents, and the error of the first */
	struct err first_bad;
	struct buf column[6];
};

/* A document encoded against a base. Free with buf_free(&diff). */
struct base_encoding {
	struct layout_key layout;
	struct buf diff;
};

/*
 * Encode a document as the base itself, or as fields of its latest layout, which is widened if necessary. 0, 1 when it
 * differs in more than fields, -1.
 */
int base_encode(struct upkeep_run *p, int base, const struct buf *xml, struct base_encoding *out, struct err *e);

/* Add a row to the batch; the diff is copied. */
void reencode_add(struct reencoding *m, const struct reencode_document *h, const struct base_encoding *encoding);

/*
 * Call m->each for every document in m->scope stored by m->from, move the rows that it adds, and pause between batches.
 * 0, also when topiaryd stops; -1 when each or after failed, or when a document is unreadable, which is left where it
 * is.
 */
int reencode_each(struct upkeep_run *p, struct reencoding *m, struct err *e);
