/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_STORE_H
#define TOPIARY_REGISTRY_STORE_H

#include "base/hash.h"
#include "bases.h"

/*
 * The XML of a node, to the byte as the node sent it: what it exports now (when NULL), or what it exported at that time (any text that
 * PostgreSQL takes for a timestamp with time zone; UTC unless it says otherwise). Checked against the hash that was signed, which is
 * put in sha256 when that is not NULL. STORE_ABSENT: no such node, or none known of that time; STORE_BAD: `when` is no time. With an
 * error.
 */
enum store_result { STORE_OK, STORE_ABSENT, STORE_BAD, STORE_FAILED };
enum store_result store_xml(struct bases *b, struct db *db, const char *node, const char *when, struct buf *out, char sha256[HASH_HEX],
			    struct err *e);

#endif
