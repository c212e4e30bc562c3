/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_QUOTA_H
#define TOPIARY_REGISTRY_INGEST_QUOTA_H

#include <stdbool.h>

#include "base/settings.h"
#include "store/db.h"

/*
 * Limits of what is stored of one host in 24 hours, by whatever names it exports (NodeDocuments, NodeBytes of
 * topiary.conf(5)): documents, and their bytes as stored. $1: nodes, $2: their hosts' addresses or NULL. Counted in the
 * database, so that restarts and several topiaryd do not matter. Called by encode.c, commit.c and http/exports.c.
 */
#define QUOTA_SQL "WITH asked AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::inet[]) a(name, peer))," \
	" names AS MATERIALIZED (SELECT name, name AS node FROM asked" \
	" UNION SELECT a.name, n.name FROM asked a JOIN node n ON n.peer = a.peer)," \
	" used AS (SELECT node, count(*) AS documents, sum(stored_bytes) AS bytes FROM topiary_history" \
	" WHERE node = ANY(ARRAY(SELECT node FROM names)) AND since > now() - interval '1 day' GROUP BY node)" \
	" SELECT n.name, sum(u.documents), sum(u.bytes) FROM names n JOIN used u ON u.node = n.node GROUP BY n.name"
#define QUOTA_RETRY 3600	/* seconds, for Retry-After */

/* Is the quota of the node in this row of QUOTA_SQL used up? */
bool quota_spent(const struct settings *s, const PGresult *r, int row);

/* May one more document of the node be stored? 1, 0, or -1 with an error. */
int quota_left(struct db *db, const struct settings *s, const char *node, const char *host, struct err *e);

#endif
