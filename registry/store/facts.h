/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "db.h"

/* Facts of a document: lines as tree_facts (hwxml/tree.h) writes them. Called by base_rows.c and ingest. */

/* Rows to insert, of one document or several: the key, of a base or a node, and the parts of a line. {0} is empty. */
enum { FACT_KEY, FACT_LINE, FACT_OBJECT, FACT_NAME, FACT_VALUE, FACT_COLUMNS };
struct facts {
	struct buf column[FACT_COLUMNS];
	size_t n;
};

/* Each 0 or -1. Insert with one of these statements; free with facts_free in every case. */
#define FACTS_OF(table, key, type) "INSERT INTO " table " (" key ", line, object, name, value) SELECT * FROM" \
	" unnest($1::" type "[], $2::int[], $3::text[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING"
int facts_add(struct facts *f, const char *key, const char *text, struct err *e);
int facts_insert(struct db *db, struct facts *f, const char *sql, struct err *e);
void facts_free(struct facts *f);

/* The facts of a base, as inserted. Appended to out. 0 or -1. */
int facts_load(struct db *db, const char *base, struct buf *out, struct err *e);

/*
 * The facts of doc that differ from base's in object, name or values. A fact that doc lacks has a line below 0 and no
 * value. Appended to out. 0 or -1.
 */
int facts_diff(const char *base, const char *doc, struct buf *out, struct err *e);
