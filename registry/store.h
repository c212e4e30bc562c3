/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_STORE_H
#define TOPIARY_REGISTRY_STORE_H

#include <stdbool.h>

#include "client/cred.h"
#include "db.h"
#include "parser.h"
#include "topo/inventory.h"

/* What the registry keeps of an export, for its acknowledgement. */
struct receipt {
	char shape[SHAPE_NAME];
	const char *stored;	/* "base", "lines", "patch", or "known": nothing new was kept. A constant. */
	long stored_bytes, xml_bytes;
	bool moved;		/* the node is new or has another shape: the snapshot changes */
};

enum store_result {
	STORE_OK,
	STORE_ABSENT,	/* not one of that node's exports */
	STORE_STALE,	/* seq is not above the last of that boot */
	STORE_FAILED,	/* PostgreSQL, with an error */
};

/*
 * Keep an export of the document d, or, when d is NULL, note that the node booted with one that it exported before. A new one has been
 * read back from the database and compared by its hash. Committed when it is STORE_OK; else db_give undoes what was begun.
 */
enum store_result store_export(struct db *db, const struct claim *c, const struct parsed *d, struct receipt *out, struct err *e);

/* The XML of an export, to the byte as the node sent it; export is its key as PostgreSQL writes it. 0 or -1. */
int store_xml(struct db *db, const char *export, struct buf *out, struct err *e);

#endif
