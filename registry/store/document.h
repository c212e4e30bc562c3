/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "bases.h"

/*
 * Stored documents: rebuilt from rows of the tables node and past, and checked against the hash that the node signed.
 * Called by ingest/commit.c, upkeep/fsck.c, http/reads.c and http/admin.c.
 */

/* A row of node or past, borrowed. */
struct document_row {
	const char *node, *sha256;	/* the hash in hexadecimal */
	struct layout_key layout;
	struct buf diff;
	size_t xml_bytes;
	int base;			/* of the layout; 0: not known, then the mark may be empty */
};

/* Rebuild the document to out, which is empty or NULL. 0, or -1 and the reason. */
int document_rebuild(struct bases *b, struct db *db, const struct document_row *row, struct buf *out, struct err *e);

/*
 * The XML of a node, byte for byte: its present export (when NULL), or that of a time (any text that PostgreSQL accepts
 * as timestamp with time zone; UTC by default). sha256, unless NULL, receives its hash. With an error unless
 * DOCUMENT_OK.
 */
enum document_result {
	DOCUMENT_OK,
	DOCUMENT_ABSENT,	/* no such node, or nothing stored of that time */
	DOCUMENT_BAD_TIME,
	DOCUMENT_FAILED,
};
enum document_result document_load(struct bases *b, struct db *db, const char *node, const char *when, struct buf *out,
				   char sha256[HASH_HEX], struct err *e);

/*
 * Cache of rows that this process stored or rebuilt successfully (2 MiB): a node that boots with an unchanged export is
 * rebuilt once. Any thread.
 */
struct verified_cache;
struct verified_cache *verified_cache_new(void);
void verified_cache_free(struct verified_cache *v);
void verified_cache_add(struct verified_cache *v, const struct document_row *row);

/* Can the document be rebuilt? Answered from the cache, else by rebuilding it. 0, or -1 and the reason. */
int document_verify(struct verified_cache *v, struct bases *b, struct db *db, const struct document_row *row,
		    struct err *e);
