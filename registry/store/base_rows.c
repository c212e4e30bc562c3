/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base_rows.h"

#include <assert.h>

#include "facts.h"
#include "hwxml/canon.h"

/*
 * Notes
 *
 * No data of its own and no lock: any thread calls, each with its connection. What was read is not trusted: a base
 * whose document does not match its hash is unreadable, and a layout that does not match its base decodes nothing.
 */

void layout_key_read(const PGresult *r, int row, int column, struct layout_key *out)
{
	snprintf(out->id, sizeof(out->id), "%s", PQgetvalue(r, row, column));
	snprintf(out->mark, sizeof(out->mark), "%s", PQgetvalue(r, row, column + 1));
}

int layout_key_query(struct db *db, struct layout_key *out, struct err *e, const char *sql, unsigned n,
		     const struct db_value *values)
{
	PGresult *r = db_query_prepared(db, e, sql, n, values);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0)
		layout_key_read(r, 0, 0, out);
	PQclear(r);
	return rows > 0 ? 1 : rows;
}

/* --- reading --- */

/* Columns of a layout's fields, as load_fields and fields_of read them. */
#define FIELDS "w.line, w.start, w.len, w.keep_start, w.keep_end, w.alias, w.fixed, w.digits," \
	" coalesce(a.object, ''), coalesce(a.name, '')"
enum { LINE, START, LEN, KEEP_START, KEEP_END, ALIAS, FIXED, DIGITS, OBJECT, NAME };

static PGresult *load_fields(struct db *db, const char *layout, struct err *e)
{
	return db_query_prepared(db, e, "SELECT " FIELDS " FROM field w JOIN layout f ON f.id = w.layout"
			" LEFT JOIN fact a ON a.base = f.base AND a.line = w.line"
			" WHERE w.layout = $1 ORDER BY w.n", 1, &DB_TEXT(layout));
}

static unsigned column_number(const PGresult *r, int row, int column)
{
	return strtoul(PQgetvalue(r, row, column), NULL, 10);
}

static int fields_of(const PGresult *r, struct field_layout *out, struct err *e)
{
	struct field_layout f = { calloc(PQntuples(r) + 1, sizeof(*f.fields)), PQntuples(r) };

	if (!f.fields)
		return err_set(e, "out of memory");
	for (int i = 0; i < PQntuples(r); i++)
		f.fields[i] = (struct field){
			.line = column_number(r, i, LINE), .start = column_number(r, i, START),
			.len = column_number(r, i, LEN),
			.keep_start = column_number(r, i, KEEP_START), .keep_end = column_number(r, i, KEEP_END),
			.alias = atoi(PQgetvalue(r, i, ALIAS)), .fixed = *PQgetvalue(r, i, FIXED) == 't',
			.digits = column_number(r, i, DIGITS),
		};
	*out = f;
	return 0;
}

static char *add_text_at(char **at, const char *text)
{
	char *here = *at;

	*at = stpcpy(here, text) + 1;
	return here;
}

enum { BYTES, CLASS, ACCEPTED_FROM, SHAPE, DRIFT, SHA256, LAYOUT, MARK };	/* of a base */

/* One allocation, so that the cache can free it. */
static struct base_metadata *metadata_new(const PGresult *r, const char *facts, const PGresult *fields)
{
	const char *drift = PQgetisnull(r, 0, DRIFT) ? NULL : PQgetvalue(r, 0, DRIFT);
	size_t n = PQntuples(fields), room = strlen(facts) + 1 + (drift ? strlen(drift) + 1 : 0);
	struct base_metadata *meta;
	char *at;

	for (size_t i = 0; i < n; i++)
		room += strlen(PQgetvalue(fields, i, OBJECT)) + strlen(PQgetvalue(fields, i, NAME)) + 2;
	if (!(meta = malloc(sizeof(*meta) + n * sizeof(*meta->facts) + room)))
		return NULL;
	*meta = (struct base_metadata){ .class = atoi(PQgetvalue(r, 0, CLASS)),
					.accepted_from = atoi(PQgetvalue(r, 0, ACCEPTED_FROM)),
					.facts = (struct base_field_fact *) (meta + 1) };
	snprintf(meta->shape, sizeof(meta->shape), "%s", PQgetvalue(r, 0, SHAPE));
	snprintf(meta->sha256, sizeof(meta->sha256), "%s", PQgetvalue(r, 0, SHA256));
	layout_key_read(r, 0, LAYOUT, &meta->layout);
	at = (char *) (meta->facts + n);
	meta->facts_text = add_text_at(&at, facts);
	if (drift)
		meta->drift = add_text_at(&at, drift);
	for (size_t i = 0; i < n; i++)
		meta->facts[i] = (struct base_field_fact){ add_text_at(&at, PQgetvalue(fields, i, OBJECT)),
							   add_text_at(&at, PQgetvalue(fields, i, NAME)) };
	assert(at == (char *) (meta->facts + n) + room);
	return meta;
}

int base_rows_fields(struct db *db, const char *layout, struct field_layout *out, struct err *e)
{
	PGresult *r = load_fields(db, layout, e);
	int rc = r ? fields_of(r, out, e) : -1;

	PQclear(r);
	return rc;
}

int base_rows_load(struct db *db, const char *base, struct cached_base *out, struct err *e)
{
	struct cached_base b = { .base = atoi(base) };
	struct buf packed = {0}, text = {0}, facts = {0};
	PGresult *fields = NULL;
	PGresult *r = db_query(db, e, "SELECT b.bytes, b.class, c.accepted_from, b.shape, b.drift, encode(b.sha256,"
				      " 'hex'), f.id, f.mark FROM base b JOIN class c ON c.id = b.class"
			       " JOIN layout f ON f.base = b.id AND f.kind <> 'patch' WHERE b.id = $1"
			       " ORDER BY f.id DESC LIMIT 1", 1, &DB_TEXT(base));
	char sha256[HASH_HEX];
	int rc = -1;

	if (!r)
		goto done;
	if (!PQntuples(r)) {
		err_set(e, "base %s does not exist any more", base);
		rc = 1;
		goto done;
	}
	if (db_bytes(r, 0, BYTES, &packed)) {
		err_set(e, "base %s: out of memory", base);
		goto done;
	}
	if (pack_open(PACK_BASE, packed.data, packed.len, NULL, 0, CANON_MAX_BYTES, &text, e)) {
		err_within(e, "base %s", base);
		rc = 1;
		goto done;
	}
	hash_hex(text.data, text.len, sha256);
	if (strcmp(sha256, PQgetvalue(r, 0, SHA256))) {
		err_set(e, "base %s: the stored document does not match its hash", base);
		rc = 1;
		goto done;
	}
	if (facts_load(db, base, &facts, e) || !(fields = load_fields(db, PQgetvalue(r, 0, LAYOUT), e)) ||
	    fields_of(fields, &b.layout, e))
		goto done;
	if (!(b.metadata = metadata_new(r, facts.data, fields))) {
		field_layout_free(&b.layout);
		err_set(e, "out of memory");
		goto done;
	}
	b.layout_id = atoi(PQgetvalue(r, 0, LAYOUT));
	b.text = text.data;
	b.len = text.len;
	text = (struct buf){0};
	*out = b;
	rc = 0;
done:
	buf_free(&packed);
	buf_free(&text);
	buf_free(&facts);
	PQclear(r);
	PQclear(fields);
	return rc;
}

/* --- wider layouts --- */

static const char *value_of(const struct cached_base *cached, const struct field *f)
{
	return cached->text + cached->lines.starts[f->line] + f->start;
}

static bool stands_behind(const struct cached_base *cached, const struct field *f, const char *what)
{
	return f->start > strlen(what) && !strncmp(value_of(cached, f) - strlen(what), what, strlen(what));
}

#define FIELD_COLUMNS "line, start, len, keep_start, keep_end, alias, fixed, digits, pages, at, width, ordinal," \
	" before, middle, after"
#define INSERT_FIELDS "INSERT INTO field (layout, n, " FIELD_COLUMNS ") SELECT $16::int, n - 1, " FIELD_COLUMNS \
	" FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::bool[], $8::int[]," \
	" $9::bool[]," \
	" $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[]) WITH ORDINALITY AS" \
	" u(" FIELD_COLUMNS ", n)"

static int insert_fields(struct db *db, const char *id, const struct cached_base *cached,
			 const struct field_layout *layout, struct err *e)
{
	enum { A_LINE, A_START, A_LEN, A_KEEP_START, A_KEEP_END, A_ALIAS, A_FIXED, A_DIGITS, A_PAGES, A_AT, A_WIDTH,
	       A_ORDINAL, A_BEFORE, A_MIDDLE, A_AFTER, COLUMNS };
	struct buf a[COLUMNS] = {0};
	PGresult *r;

	for (size_t i = 0; i < layout->n; i++) {
		const struct field *f = &layout->fields[i];
		const char *value = value_of(cached, f);
		unsigned at, width, ordinal;
		/* A count of pages whose alias is a memory size. */
		bool is_pages = f->alias >= 0 && stands_behind(cached, f, " count=\"") &&
			stands_behind(cached, &layout->fields[f->alias], "local_memory=\"");

		assert(f->alias < (int) i && f->keep_start + f->keep_end <= f->len);
		field_layout_position(layout, i, &at, &width, &ordinal);
		db_array_number(&a[A_LINE], f->line);
		db_array_number(&a[A_START], f->start);
		db_array_number(&a[A_LEN], f->len);
		db_array_number(&a[A_KEEP_START], f->keep_start);
		db_array_number(&a[A_KEEP_END], f->keep_end);
		db_array_number(&a[A_ALIAS], f->alias);
		db_array_text(&a[A_FIXED], f->fixed ? "t" : "f");
		db_array_number(&a[A_DIGITS], f->digits);
		db_array_text(&a[A_PAGES], is_pages ? "t" : "f");
		db_array_number(&a[A_AT], at);
		db_array_number(&a[A_WIDTH], width);
		db_array_number(&a[A_ORDINAL], ordinal);
		db_array_span(&a[A_BEFORE], value, f->keep_start);
		db_array_span(&a[A_MIDDLE], value + f->keep_start, f->len - f->keep_start - f->keep_end);
		db_array_span(&a[A_AFTER], value + f->len - f->keep_end, f->keep_end);
	}
	r = db_query_arrays(db, false, INSERT_FIELDS, COLUMNS, a, 1, &DB_TEXT(id), e);
	PQclear(r);
	return r ? 0 : -1;
}

/* Locks the base's row, so that layouts of one base are stored one after another. */
int base_rows_widen(struct db *db, const struct cached_base *cached, const struct field_layout *wider, struct err *e)
{
	const struct base_metadata *meta = base_metadata(cached);
	struct db_value v[] = { DB_NUMBER(cached->base), DB_TEXT(meta->sha256) };
	struct layout_key latest;
	char id[DB_KEY];
	int rc = db_execute(db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = db_query_key(db, id, e, "SELECT id FROM base WHERE id = $1 AND sha256 = decode($2, 'hex') FOR"
					     " UPDATE", 2, v);
	if (rc == 1)
		rc = layout_key_query(db, &latest, e, "SELECT id, mark FROM layout WHERE base = $1 AND kind <> 'patch'"
				      " ORDER BY id DESC LIMIT 1", 1, v);
	if (rc == 1 && !strcmp(latest.id, meta->layout.id) && !strcmp(latest.mark, meta->layout.mark)) {
		rc = db_query_key(db, id, e, "INSERT INTO layout (base, kind, shape) SELECT id, 'fields', shape"
				  " FROM base WHERE id = $1 RETURNING id", 1, v);
		if (rc == 1 && insert_fields(db, id, cached, wider, e))
			rc = -1;
	}
	/* No row: the base is deleted. */
	return db_end(db, rc == 1 ? 0 : rc == 0 ? 1 : -1, e);
}

/* --- documents as bases --- */

int base_rows_restore(struct db *db, const struct buf *xml, struct err *e)
{
	char sha256[HASH_HEX], base[DB_KEY];
	struct pack alone;
	int rc;

	if (pack_make(NULL, 0, xml->data, xml->len, &alone, e))
		return -1;
	hash_hex(xml->data, xml->len, sha256);
	rc = db_query_key(db, base, e, "UPDATE base SET bytes = $2::bytea WHERE sha256 = decode($1, 'hex') AND bytes"
				       " <> $2::bytea"
		    " RETURNING id", 2, (struct db_value[]){ DB_TEXT(sha256),
							     DB_BYTES(alone.bytes.data, alone.bytes.len) });
	buf_free(&alone.bytes);
	return rc;
}

int base_rows_insert(struct db *db, const struct base_insertion *n, char base[static DB_KEY],
		     struct layout_key *layout, struct err *e)
{
	char sha256[HASH_HEX];
	struct facts facts = {0};
	struct pack alone;
	int rc;

	if (pack_make(NULL, 0, n->xml->data, n->xml->len, &alone, e))
		return -1;
	hash_hex(n->xml->data, n->xml->len, sha256);
	rc = db_query_key(db, base, e, "INSERT INTO base (class, shape, sha256, bytes, xml_bytes, detail, drift, node)"
		       " VALUES ($1, $2, decode($3, 'hex'), $4, $5, $6, $7, $8) ON CONFLICT (sha256) DO NOTHING"
		       " RETURNING id", 8,
		       (struct db_value[]){ DB_TEXT(n->class), DB_TEXT(n->shape), DB_TEXT(sha256),
					    DB_BYTES(alone.bytes.data, alone.bytes.len), DB_NUMBER(n->xml->len),
					    DB_TEXT(n->detail), DB_TEXT(n->drift), DB_TEXT(n->node) });
	buf_free(&alone.bytes);
	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	rc = facts_add(&facts, base, n->facts, e) ||
	     facts_insert(db, &facts, FACTS_OF("fact", "base", "int"), e);
	facts_free(&facts);
	if (rc || layout_key_query(db, layout, e, "INSERT INTO layout (base, kind, shape) VALUES ($1, 'base', $2)"
				   " RETURNING id, mark", 2,
			 (struct db_value[]){ DB_TEXT(base), DB_TEXT(n->shape) }) != 1)
		return -1;
	return 0;
}
