/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_QUOTA_H
#define TOPIARY_REGISTRY_INGEST_QUOTA_H

#include <stdbool.h>

#include "base/settings.h"
#include "store/db.h"

/*
 * Limits of what is stored of one node in 24 hours (NodeDocuments, NodeBytes of topiary.conf(5)): documents, and their
 * bytes as stored. Counted in the database, so that restarts and several topiaryd do not matter. Called by encode.c,
 * commit.c and http/exports.c.
 */
#define QUOTA_SQL "SELECT node, count(*), sum(stored_bytes) FROM topiary_history" \
	" WHERE node = ANY($1::text[]) AND since > now() - interval '1 day' GROUP BY node"
#define QUOTA_RETRY 3600	/* seconds, for Retry-After */

/* Is the quota of the node in this row of QUOTA_SQL used up? */
bool quota_spent(const struct settings *s, const PGresult *r, int row);

/* May one more document of the node be stored? 1, 0, or -1 with an error. */
int quota_left(struct db *db, const struct settings *s, const char *node, struct err *e);

#endif
