/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_FABRIC_STORE_H
#define TOPIARY_REGISTRY_FABRIC_STORE_H

#include "base/buf.h"
#include "db.h"
#include "fabric/fabric.h"

/* The fabric in the database (sql/0003_fabric.sql). */

/* Keep it: the version that it is, and whether that is a new one. 0 or -1. */
int fabric_keep(struct db *db, const struct fabric *f, unsigned signer, unsigned *version, bool *changed, struct err *e);

/* The version of now, 0 when there is none; -1. */
int fabric_newest(struct db *db, struct err *e);

/*
 * What there is now (when NULL) or was at that time, as JSON (fabric/json.h) with its version and times, and the names that the nodes'
 * topologies tell for its adapters. FABRIC_BAD: `when` is no time. With an error unless FABRIC_OK.
 */
enum fabric_result { FABRIC_OK, FABRIC_ABSENT, FABRIC_BAD, FABRIC_FAILED };
enum fabric_result fabric_document(struct db *db, const char *when, struct buf *out, struct err *e);

/* The levels of its largest plane as text (fabric/hierarchy.h), for topiary map. */
enum fabric_result fabric_levels(struct db *db, struct buf *out, struct err *e);

#endif
