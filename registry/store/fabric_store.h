/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "db.h"
#include "fabric/model/fabric.h"

/*
 * The fabric in the database (sql/0003_fabric.sql). Called by http/costs_fabric.c and
 * upkeep.
 */

/* Store it: the resulting version, and whether that is new. 0 or -1. */
int fabric_save(struct db *db, const struct fabric *f, unsigned signer, unsigned *version, bool *changed,
		struct err *e);

/* For upkeep: record the node of each adapter, so that queries need not decode the GUIDs of all nodes. 0 or -1. */
int fabric_match(struct db *db, struct err *e);

/* Text that identifies the newest version in any database: number and time; "" when there is none. 0 or -1. */
#define FABRIC_VERSION_NAME 64
int fabric_latest(struct db *db, char name[static FABRIC_VERSION_NAME], struct err *e);

/*
 * The fabric as of now (when NULL) or of that time, as JSON (fabric/read/json.h) with version and times, and the names
 * of its adapters in the nodes' topologies. FABRIC_BAD: `when` is no time. With an error unless FABRIC_OK.
 */
enum fabric_result { FABRIC_OK, FABRIC_ABSENT, FABRIC_BAD, FABRIC_FAILED };
enum fabric_result fabric_document(struct db *db, const char *when, struct buf *out, struct err *e);

/* The levels of its largest plane as text (fabric/model/hierarchy.h), for topiary map. */
enum fabric_result fabric_levels(struct db *db, struct buf *out, struct err *e);
