/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/settings.h"
#include "store/db.h"

/*
 * The snapshot of all nodes (shape/snapshot.h), from the database. 0, or -1; the caller frees out. Called by topiaryd.c
 * and http.
 */
int publish_text(struct db *db, struct buf *out, struct err *e);

/*
 * A thread that keeps three files up to date with the database: the snapshot, the fabric's levels (fabric_store.h;
 * no file until a fabric was imported), and the nodes' costs (costs_store.h; no nodes in it until one was
 * measured). Within a second of a request, and every half minute, because another topiaryd may write to the same
 * database. A file is replaced when its content is another than the database has, the snapshot by
 * snapshot_replace.
 */
struct publisher;

/* Pool and settings are borrowed until publisher_stop. NULL with an error. */
struct publisher *publisher_start(struct db_pool *pool, const struct settings *s, struct err *e);
void publisher_request(struct publisher *p);
/* Is SnapshotFile what the database has, as far as that was read? False if it cannot be written, or was kept. */
bool publisher_is_current(struct publisher *p);
/* Writes what was requested and stops. Accepts NULL. */
void publisher_stop(struct publisher *p);
