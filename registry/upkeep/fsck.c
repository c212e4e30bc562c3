/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fsck.h"

#include "base/log.h"
#include "store/document.h"

/*
 * Notes
 *
 * Called by upkeep's thread and, for administrators, in workers, each with its own struct fsck. It rebuilds from what
 * is stored, with a cache of its own, and repairs from the cache of all.
 */
#define ROWS "64"		/* of one call: each may cost a worker some milliseconds */
#define BYTES "8388608"		/* of their diffs, in addition to the first one's */
#define SHAPES 8		/* bases cached, and shapes parsed, in one call */
#define CALLS 32		/* of one run of upkeep */

enum { NODE, SINCE, LAYOUT, MARK, KIND, BASE, SHAPE, XML_BYTES, SHA256, DIFF, NOTED };
#define COLUMNS "o.since, o.layout, f.mark, f.kind, f.base, f.shape, o.xml_bytes, encode(o.sha256, 'hex')," \
	" o.diff, u.node IS NOT NULL"
#define SOME(name, table, behind, order) "SELECT * FROM (SELECT s.*, sum(octet_length(diff)) OVER (ORDER BY" \
	" " order ") AS total" \
	" FROM (SELECT o." name " AS node, " COLUMNS " FROM " table " o JOIN layout f ON f.id = o.layout" \
	" LEFT JOIN unreadable u ON u.node = o." name " AND u.since = o.since WHERE" \
	" " behind " ORDER BY o." name ", o.since" \
	" LIMIT " ROWS ") s) t WHERE total - octet_length(diff) < " BYTES " ORDER BY " order

static const struct {
	const char *name, *sql;
	bool present;
} tables[] = {
	{ "node", SOME("name", "node", "o.name > $1 AND $2::timestamptz IS NOT NULL", "node, since"), true },
	{ "past", SOME("node", "past", "(o.node, o.since) > ($1, $2::timestamptz)", "node, since"), false },
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* Only for the row that was checked: its node may have sent another document meanwhile. */
#define RECORD "INSERT INTO unreadable (node, since, reason) SELECT $1::text, $2::timestamptz, $3::text WHERE EXISTS" \
	" (SELECT 1 FROM node n WHERE n.name = $1 AND n.since = $2 AND n.layout = $4::int AND n.diff = $5::bytea" \
	" UNION ALL SELECT 1 FROM past o WHERE o.node = $1 AND o.since = $2 AND o.layout = $4 AND o.diff = $5)" \
	" ON CONFLICT (node, since) DO UPDATE SET reason = excluded.reason"
#define TAKE_BACK "DELETE FROM unreadable WHERE node = $1 AND since = $2::timestamptz"

/* Shapes parsed of bases: documents that differ from one in fields alone have its shape. */
struct shape_cache {
	char base[SHAPES][DB_KEY], shape[SHAPES][SHAPE_NAME];
	unsigned n;
};

/* 0, 1 with the reason when it has no shape, -1. */
static int document_shape(struct fsck *f, struct shape_cache *known, const PGresult *r, int row, const struct buf *xml,
			  char shape[static SHAPE_NAME], struct err *e)
{
	const char *base = PQgetvalue(r, row, BASE);
	bool patch = !strcmp(PQgetvalue(r, row, KIND), "patch");
	enum parser_result rc;
	struct parsed parsed;
	unsigned i = 0;

	while (i < known->n && strcmp(known->base[i], base))
		i++;
	if (!patch && i < known->n) {
		memcpy(shape, known->shape[i], SHAPE_NAME);
		return 0;
	}
	if ((rc = parser_read(f->parser, PQgetvalue(r, row, NODE), xml, &parsed, NULL, e)) != PARSER_OK)
		return rc == PARSER_REFUSED ? 1 : -1;
	shape_name(parsed.allocation, shape);
	parsed_free(&parsed);
	if (!patch && known->n < SHAPES) {
		snprintf(known->base[known->n], DB_KEY, "%s", base);
		memcpy(known->shape[known->n++], shape, SHAPE_NAME);
	}
	return 0;
}

/* Was the base damaged in the database alone, and is it repaired? */
static bool restore_base(struct fsck *f, int base)
{
	const struct cached_base *cached = f->record ? bases_acquire_cached(f->bases, base) : NULL;
	int rc = 0;

	if (!cached)
		return false;
	if ((rc = base_rows_restore(f->db, &(struct buf){ .data = cached->text, .len = cached->len }, NULL)) == 1)
		log_warning("base %d: the stored document was damaged and was restored from memory", base);
	bases_release(f->bases, cached);
	return rc == 1;
}

/* Of a patch the shape may differ from the base's. */
#define RESTORE_SHAPE "WITH s AS (SELECT name FROM shape WHERE name = $2)," \
	" b AS (UPDATE base b SET shape = s.name FROM s WHERE b.id = $3::int AND b.shape <> s.name AND $4 <> 'patch')" \
	" UPDATE layout f SET shape = s.name FROM s WHERE f.id = $1::int AND f.shape <> s.name RETURNING f.id"
#define HAS_SHAPE "SELECT id FROM layout WHERE id = $1::int AND shape = $2"

/* The document is whole, so that what is stored of its shape was damaged: is it that of the document now? */
static bool restore_shape(struct fsck *f, const PGresult *r, int row, const char *shape)
{
	struct db_value v[] = { DB_TEXT(PQgetvalue(r, row, LAYOUT)), DB_TEXT(shape), DB_TEXT(PQgetvalue(r, row, BASE)),
				DB_TEXT(PQgetvalue(r, row, KIND)) };
	char layout[DB_KEY];

	if (!f->record)
		return false;
	if (db_query_key(f->db, layout, NULL, RESTORE_SHAPE, 4, v) > 0) {
		log_warning("layout %s: shape %s was stored instead of %s, and was corrected", layout,
			    PQgetvalue(r, row, SHAPE), shape);
		bases_invalidate(f->bases, f->db, atoi(PQgetvalue(r, row, BASE)), NULL);
	}
	return db_query_key(f->db, layout, NULL, HAS_SHAPE, 2, v) == 1;
}

/* 0, 1 with the reason when it cannot be rebuilt, -1 when that is unknown. */
static int check_document(struct fsck *f, struct shape_cache *known, const PGresult *r, int row,
			  const struct document_row *s, struct err *e)
{
	char shape[SHAPE_NAME];
	struct buf xml = {0};
	int rc = document_rebuild(f->stored, f->db, s, &xml, e);

	if (rc && restore_base(f, s->base))
		rc = document_rebuild(f->stored, f->db, s, &xml, e);
	/* A broken connection says nothing about the document. */
	if (rc)
		return db_execute(f->db, NULL, "SELECT 1", 0, NULL) ? -1 : 1;
	rc = document_shape(f, known, r, row, &xml, shape, e);
	if (rc == 0 && strcmp(shape, PQgetvalue(r, row, SHAPE)) && !restore_shape(f, r, row, shape)) {
		err_set(e, "its shape is %s, but %s is stored", shape, PQgetvalue(r, row, SHAPE));
		rc = 1;
	}
	buf_free(&xml);
	return rc;
}

static int record_unreadable(struct fsck *f, const PGresult *r, int row, bool present, const struct document_row *s,
			     const char *reason, struct err *e)
{
	const char *node = PQgetvalue(r, row, NODE), *since = PQgetvalue(r, row, SINCE);

	json_array_append_new(f->unreadable,
			      json_pack("{s:s, s:s, s:b, s:s}", "node", node, "since", since, "present", present,
						       "reason", reason));
	if (!f->record)
		return 0;
	if (*PQgetvalue(r, row, NOTED) != 't')
		log_error("%s: the %sdocument of %s cannot be rebuilt: %s%s", node, present ? "" : "former ", since,
			  reason, present ? "; the node is asked to send it again" : "");
	return db_execute(f->db, e, RECORD, 5,
			  (struct db_value[]){ DB_TEXT(node), DB_TEXT(since), DB_TEXT(reason), DB_TEXT(s->layout.id),
							       s->diff.len ? DB_BYTES(s->diff.data,
										      s->diff.len) : DB_TEXT("") });
}

static int check_row(struct fsck *f, struct shape_cache *known, const PGresult *r, int row, bool present, struct err *e)
{
	struct document_row s = { .node = PQgetvalue(r, row, NODE), .sha256 = PQgetvalue(r, row, SHA256),
			       .xml_bytes = strtoul(PQgetvalue(r, row, XML_BYTES), NULL, 10),
			       .base = atoi(PQgetvalue(r, row, BASE)) };
	struct err why;
	int rc;

	layout_key_read(r, row, LAYOUT, &s.layout);
	if (db_bytes(r, row, DIFF, &s.diff))
		return err_set(e, "out of memory");
	rc = check_document(f, known, r, row, &s, &why);
	f->checked++;
	if (rc < 0)
		*e = why;
	else if (rc)
		rc = record_unreadable(f, r, row, present, &s, why.text, e);
	else if (f->record && *PQgetvalue(r, row, NOTED) == 't')
		rc = db_execute(f->db, e, TAKE_BACK, 2,
				(struct db_value[]){ DB_TEXT(s.node), DB_TEXT(PQgetvalue(r, row, SINCE)) });
	buf_free(&s.diff);
	return rc;
}

/* The cursor is TABLE/NODE/SINCE: returns the table; node and since follow. */
static size_t parse_cursor(const char *after, char node[static 256], char since[static 48])
{
	size_t t = 0;

	strcpy(node, "");
	strcpy(since, "-infinity");
	while (t < TABLES - 1 && *after && strncmp(after, tables[t].name, strlen(tables[t].name)))
		t++;
	if (*after)
		sscanf(after, "%*[^/]/%255[^/]/%47[^/]", node, since);
	return t;
}

int fsck_some(struct fsck *f, const char *after, struct err *e)
{
	char node[256], since[48];
	size_t t = parse_cursor(after, node, since);
	struct shape_cache known = { .n = 0 };
	PGresult *r;
	int rows, rc = 0;

	f->checked = 0;
	f->next[0] = '\0';
	if (!(f->unreadable = json_array()) || !(f->stored = bases_new(SHAPES))) {
		json_decref(f->unreadable);
		return err_set(e, "out of memory");
	}
	r = db_query(f->db, e, tables[t].sql, 2, (struct db_value[]){ DB_TEXT(node), DB_TEXT(since) });
	rows = r ? PQntuples(r) : 0;
	for (int i = 0; i < rows && rc == 0; i++)
		rc = check_row(f, &known, r, i, tables[t].present, e);
	if (rows)
		snprintf(f->next, sizeof(f->next), "%s/%s/%s", tables[t].name, PQgetvalue(r, rows - 1, NODE),
			 PQgetvalue(r, rows - 1, SINCE));
	else if (t + 1 < TABLES)
		snprintf(f->next, sizeof(f->next), "%s//-infinity", tables[t + 1].name);
	PQclear(r);
	bases_free(f->stored);
	if (!r || rc) {
		json_decref(f->unreadable);
		f->unreadable = NULL;
	}
	return r ? rc : -1;
}

/* --- a step of upkeep --- */

#define NO_MORE "DELETE FROM unreadable u WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.name = u.node AND n.since =" \
	" u.since) AND NOT EXISTS (SELECT 1 FROM past o WHERE o.node = u.node AND o.since = u.since)"

int fsck_run(struct upkeep_run *p, struct err *e)
{
	struct fsck f = { .bases = p->bases, .db = p->db, .parser = p->parser, .record = true };
	PGresult *r = db_query(p->db, e, "SELECT verify_cursor FROM registry", 0, NULL);
	int rc = r ? 0 : -1;

	if (r && PQntuples(r))
		snprintf(f.next, sizeof(f.next), "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	for (unsigned i = 0; rc == 0 && i < CALLS && (i == 0 || upkeep_pause(p)); i++) {
		char after[sizeof(f.next)];

		memcpy(after, f.next, sizeof(after));
		if ((rc = fsck_some(&f, after, e)))
			break;
		json_decref(f.unreadable);
		if (!*f.next)
			return db_execute(p->db, e, NO_MORE, 0, NULL) ||
			       db_execute(p->db, e, "UPDATE registry SET verify_cursor = '', verified = now()", 0,
					  NULL) ? -1 : 0;
		rc = db_execute(p->db, e, "UPDATE registry SET verify_cursor = $1", 1, &DB_TEXT(f.next));
	}
	return rc;
}
