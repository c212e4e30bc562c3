/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_PLACE_H
#define TOPIARY_REGISTRY_PLACE_H

#include "drift.h"

/* How a document is to be kept. Free with placed_free. */
struct placed {
	char form[DB_KEY];		/* its key, as PostgreSQL writes it */
	int base, class, accepted_from;	/* the base that the form is of, its class, and whence that was accepted, or 0 */
	const char *kind;		/* "base", "fields", "patch": a constant */
	char shape[SHAPE_NAME];
	struct buf diff;
	size_t stored_bytes;
	char *facts;			/* of a patch: those that are not its base's (facts_differ); else NULL */
	struct drift drift;
};

enum place_result { PLACE_OK, PLACE_REFUSED, PLACE_FAILED };

/*
 * Find out how the node's document is kept smallest. A document that differs from a known base in fields alone is known to be valid by
 * that; any other is read by the parser. New bases, forms and shapes are committed on the way: they are of use to others even if this
 * document never is. What comes out has been turned back into the document and compared.
 *
 * class is what the node is expected to be, or 0 when it is new or was not asked for: a document that is what another class is would
 * not be known for a change otherwise.
 */
enum place_result place_document(struct bases *b, struct db_pool *pool, struct parser *parser, const char *node, int class,
				 const struct buf *xml, struct placed *out, struct err *e);
void placed_free(struct placed *p);

#endif
