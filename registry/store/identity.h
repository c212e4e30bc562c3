/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "bases.h"
#include "migrate.h"

/*
 * The identity of the database, checked with each new connection. The schema is brought up to date. When the database
 * is another one than before (restored from a dump, promoted, created anew), that is logged in one line and the cache
 * is emptied.
 *
 * It is identified by the server's system identifier and timeline, the oids of the database and of two tables, and the
 * random identity in the table registry. A primary on an older timeline than one seen of the same system was not fenced
 * when another was promoted; writes to it would be lost, so it is refused. A standby is accepted: rows identify
 * themselves (bases.h). Called by topiaryd.c, http/exports.c and http/metrics.c.
 */
struct identity;

/*
 * on_change is called when the database is another one, since open connections may go to the former. reads_elsewhere:
 * reads have a connection string of their own, ReadDatabase. All is borrowed. NULL when out of memory.
 */
struct identity *identity_new(struct migrations *m, struct bases *b, bool reads_elsewhere,
			      void (*on_change)(void *user), void *user);
void identity_free(struct identity *i);

/*
 * Check the database of a connection. reads_only: it is not written to; an old primary is accepted, and a schema that
 * is not up to date is an error, as is a primary of ReadDatabase that is another database than Database. 0 or -1.
 */
int identity_check(struct identity *i, struct db *db, bool reads_only, struct err *e);

/* For /metrics. */
struct identity_counts {
	unsigned timeline;		/* of the primary; 0: not known */
	/* since the start: other databases, connections to old primaries refused */
	unsigned long long changes, refused;
};
void identity_counts(struct identity *i, struct identity_counts *out);
