/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <arpa/inet.h>
#include <semaphore.h>
#include <sys/queue.h>

#include "base/settings.h"
#include "store/db.h"

/*
 * Admission of documents, for clusters that boot all at once. Bounds the documents in progress, which bounds memory and
 * leaves processors to reads, and tells announcing nodes over how many seconds to spread their documents. A node has
 * one slot, an address at most a quarter, so that nobody takes the slots of others; a host whose documents are refused
 * repeatedly has to wait. Called by topiaryd.c and http.
 */
struct gate;

/* rate: documents per second to be accepted. NULL when out of memory. */
struct gate *gate_new(unsigned at_once, unsigned rate);
void gate_free(struct gate *g);

/* A document in progress; must stay valid from gate_enter to gate_leave. */
struct gate_slot {
	const char *node;			/* borrowed */
	char address[INET6_ADDRSTRLEN];		/* of the sender; empty: shared by many, not limited */
	/* Internal: */
	bool inside;
	sem_t called;
	TAILQ_ENTRY(gate_slot) link;
};

/*
 * Wait for a slot. GATE_DUPLICATE at once when the node has one or waits for one; GATE_FULL when none became free
 * within 20 s.
 */
enum gate_result { GATE_ENTERED, GATE_DUPLICATE, GATE_FULL };
enum gate_result gate_enter(struct gate *g, struct gate_slot *t);
void gate_leave(struct gate *g, struct gate_slot *t);

/* Counts one more announced document: the window, in seconds, over which it and the recent ones arrive at the rate. */
unsigned gate_window(struct gate *g);

/* Records a refused document of the host; seconds until it may send another, 0 when few were refused. */
void gate_refused(struct gate *g, const char *host);
unsigned gate_backoff(struct gate *g, const char *host);

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
bool gate_quota_spent(const struct settings *s, const PGresult *r, int row);

/* May one more document of the node be stored? 1, 0, or -1 with an error. */
int gate_quota_left(struct db *db, const struct settings *s, const char *node, const char *host, struct err *e);
