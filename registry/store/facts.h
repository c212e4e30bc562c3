/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_STORE_FACTS_H
#define TOPIARY_REGISTRY_STORE_FACTS_H

#include "db.h"

/* Facts of a document: lines as tree_facts (hwxml/tree.h) writes them. Called by bases.c and ingest. */

/*
 * Insert them, one row a line. sql is a constant: "INSERT INTO ... (KEY, line, object, name, value) SELECT $1::TYPE, *
 * " FACTS_ROWS. 0 or -1.
 */
#define FACTS_ROWS "FROM unnest($2::int[], $3::text[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING"
int facts_insert(struct db *db, const char *sql, const char *key, const char *facts, struct err *e);

/* The facts of a base, as inserted. Appended to out. 0 or -1. */
int facts_load(struct db *db, const char *base, struct buf *out, struct err *e);

/*
 * The facts of doc that differ from base's in object, name or values. A fact that doc lacks has a line below 0 and no
 * value. Appended to out. 0 or -1.
 */
int facts_diff(const char *base, const char *doc, struct buf *out, struct err *e);

#endif
