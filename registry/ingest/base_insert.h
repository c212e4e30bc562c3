/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_NEW_BASE_H
#define TOPIARY_REGISTRY_INGEST_NEW_BASE_H

#include "store/bases.h"
#include "parser.h"

/* A document that becomes a base; all borrowed. */
struct base_insertion {
	const char *class, *shape, *node;
	const char *drift;		/* from the class's baseline, or NULL */
	const struct buf *xml;
	const struct parsed *parsed;
};

/*
 * Insert a base with its own layout in the open transaction; base and layout receive the keys. 0, 1 when a base with
 * this document exists, -1. Called by encoding, upkeep and accept.
 */
int base_insert(struct db *db, const struct base_insertion *n, char base[static DB_KEY], struct layout_key *layout,
		struct err *e);

/* Rewrite the stored bytes of the base with this document if they are damaged. 1 when they were, 0, -1. */
int base_restore(struct db *db, const struct buf *xml, struct err *e);

#endif
