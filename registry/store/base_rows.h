/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/hash.h"
#include "db.h"
#include "delta/base_cache.h"
#include "shape/inventory.h"

/*
 * The rows of the tables base, layout and field, read and written: what is cached of them, and when, is bases.c's.
 * Called by bases.c, ingest, upkeep and http/admin.c.
 */

/*
 * A layout: a row of the SQL table layout, which says how documents are stored against a base (itself, fields, or a
 * patch).
 */
#define LAYOUT_MARK 40
struct layout_key {
	char id[DB_KEY], mark[LAYOUT_MARK];
};
/* SQL condition: row f of the table layout is the one with this id and mark (columns or parameters). */
#define LAYOUT_IS(id, mark) "f.id = " id " AND f.mark = " mark

void layout_key_read(const PGresult *r, int row, int column, struct layout_key *out);	/* id and mark, in turn */

/* The first row of a query for f.id and f.mark: 1, 0 when there is no row, -1. */
int layout_key_query(struct db *db, struct layout_key *out, struct err *e, const char *sql, unsigned n,
		     const struct db_value *values);

/* The fact that a field of a layout holds, for drift messages. */
struct base_field_fact {
	char *object, *name;
};

/* Metadata of a cached base. One allocation; the pointers point into it. */
struct base_metadata {
	int class, accepted_from;	/* accepted_from: 0 when there is none */
	const char *facts_text;		/* facts of the base's document, as tree_facts writes them */
	char sha256[HASH_HEX];		/* of the base's document */
	struct layout_key layout;	/* the latest */
	char shape[SHAPE_NAME];
	const char *drift;		/* changes from its class's baseline as JSON, or NULL */
	struct base_field_fact *facts;	/* one for each field of the layout */
};

static inline const struct base_metadata *base_metadata(const struct cached_base *cached)
{
	return cached->metadata;
}

/* Read a base with its latest layout, for base_cache_add. 0, 1 when it is deleted or unreadable, -1. */
int base_rows_load(struct db *db, const char *base, struct cached_base *out, struct err *e);

/* The fields of a layout of any age. 0 or -1; free with field_layout_free. */
int base_rows_fields(struct db *db, const char *layout, struct field_layout *out, struct err *e);

/*
 * Store a wider layout of a base, in a transaction, unless another than the cached one is the latest by now. 0, 1 when
 * the base is deleted, -1.
 */
int base_rows_widen(struct db *db, const struct cached_base *cached, const struct field_layout *wider, struct err *e);

/* A document that becomes a base; all borrowed. */
struct base_insertion {
	const char *class, *shape, *node;
	const char *drift;		/* from the class's baseline, or NULL */
	const struct buf *xml;
	const char *detail, *facts;	/* as the parser returned them */
};

/*
 * Insert a base with its own layout in the open transaction; base and layout receive the keys. 0, 1 when a base with
 * this document exists, -1.
 */
int base_rows_insert(struct db *db, const struct base_insertion *n, char base[static DB_KEY],
		     struct layout_key *layout, struct err *e);

/* Rewrite the stored bytes of the base with this document if they are damaged. 1 when they were, 0, -1. */
int base_rows_restore(struct db *db, const struct buf *xml, struct err *e);
