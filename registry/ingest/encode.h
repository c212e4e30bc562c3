/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/settings.h"
#include "drift.h"
#include "store/bases.h"
#include "parser.h"

/* An encoded document. Free with encoded_free. Called by http/exports.c. */
struct encoded {
	struct layout_key layout;
	/* the layout's base, its class, and the class that one was accepted from, or 0 */
	int base, class, accepted_from;
	const char *kind;		/* "base", "fields", "patch": a constant */
	char shape[SHAPE_NAME];
	struct buf diff;
	size_t stored_bytes;
	char *facts;			/* of a patch: facts that differ from the base's (facts_diff); else NULL */
	struct drift drift;
};

/* ENCODE_QUOTA: the host's daily quota is used up (gate.h); not checked here for documents encoded as fields. */
enum encode_result { ENCODE_OK, ENCODE_REFUSED, ENCODE_FAILED, ENCODE_QUOTA };

/*
 * Encode a node's document in its smallest form. A document that differs from a known base in fields alone is thereby
 * valid; any other goes to the parser. New bases, layouts and shapes are committed on the way, since they serve other
 * nodes even if this document is never committed. The result was decoded again and compared with the document. Called
 * by http/exports.c.
 *
 * host: the address of the sender, for its quota; NULL: the node alone counts.
 * class: the class expected of the node, 0 for a new node or when unknown; without it a document that equals another
 * class's would not be reported as a change.
 */
enum encode_result encode_document(const struct settings *s, struct bases *b, struct db_pool *pool,
				   struct parser *parser, const char *node, const char *host, int class,
				   const struct buf *xml, struct encoded *out, struct err *e);
void encoded_free(struct encoded *p);
