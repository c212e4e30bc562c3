/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_FACTS_H
#define TOPIARY_REGISTRY_FACTS_H

#include "db.h"

/* Facts of a document are lines as tree_facts (topo/tree.h) writes them. */

/*
 * Insert them, a row a line. sql is a constant: "INSERT INTO ... (KEY, line, object, name, value) SELECT $1::TYPE, * "
 * FACTS_ROWS. 0 or -1.
 */
#define FACTS_ROWS "FROM unnest($2::int[], $3::text[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING"
int facts_insert(struct db *db, const char *sql, const char *key, const char *facts, struct err *e);

/* Those of a base, as they were inserted. Appended to out. 0 or -1. */
int facts_load(struct db *db, const char *base, struct buf *out, struct err *e);

/*
 * What stands in doc and not so in base: facts are the same when their object, name and values are. A fact that doc has no more is told
 * with a line below 0 and no value. Appended to out. 0 or -1.
 */
int facts_differ(const char *base, const char *doc, struct buf *out, struct err *e);

#endif
