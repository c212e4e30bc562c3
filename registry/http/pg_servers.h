/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "store/db.h"

/*
 * Watches the servers of a connection string that names several (libpq's host=a,b): every few seconds each is asked
 * whether it is a primary, and on which timeline. Two primaries, or a primary on an older timeline than the latest
 * seen, are a split: writes to one of them will be lost. Replication and failover are PostgreSQL's business.
 */
struct pg_servers;

/*
 * Checks once before it returns. on_split is called from a thread of its own when a split begins. conninfo and user are
 * borrowed. NULL with an error when the string is invalid or memory is short.
 */
struct pg_servers *pg_servers_start(const char *conninfo, void (*on_split)(void *user), void *user, struct err *e);
void pg_servers_stop(struct pg_servers *h);

/* May this connection be written to? -1 with an error that names the servers when there is a split. */
int pg_servers_check(struct pg_servers *h, struct db *db, struct err *e);

/* Is there a split now? */
bool pg_servers_split(struct pg_servers *h);

/* For /metrics: the i-th server's name, NULL after the last; primary and reached as of the last check. */
const char *pg_servers_state(struct pg_servers *h, unsigned i, bool *primary, bool *reached);
