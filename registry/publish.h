/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_PUBLISH_H
#define TOPIARY_REGISTRY_PUBLISH_H

#include "base/buf.h"
#include "db.h"

/* The snapshot of all nodes (topo/snapshot.h), from the database. 0, or -1; the caller frees out. */
int publish_text(struct db *db, struct buf *out, struct err *e);

/*
 * A thread that keeps two files as the database has them, the snapshot and the levels of the fabric (fabric_store.h), of which there
 * is none until a fabric was imported: at most a second after a nudge, and every half minute, because another topiaryd may write to
 * the same database. A file is replaced only when its content changes.
 */
struct publisher;

struct publisher *publisher_start(struct db_pool *pool, const char *snapshot, const char *fabric, struct err *e);
void publisher_nudge(struct publisher *p);
/* Write what a nudge asked for and end. Accepts NULL. */
void publisher_stop(struct publisher *p);

#endif
