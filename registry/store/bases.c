/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "facts.h"
#include "hwxml/canon.h"

#define BASE_MAX CANON_MAX_BYTES
#define ATTEMPTS 16		/* to encode, while other exports widen the same base */

struct bases {
	struct base_cache *cache;
	unsigned max_cached;
	pthread_mutex_t lock;	/* of what follows */
	struct layout_key seen;	/* the newest layout that bases_refresh saw */
};

int layout_key_query(struct db *db, struct layout_key *out, struct err *e, const char *sql, unsigned n,
		     const struct db_value *values)
{
	PGresult *r = db_query_prepared(db, e, sql, n, values);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0) {
		snprintf(out->id, sizeof(out->id), "%s", PQgetvalue(r, 0, 0));
		snprintf(out->mark, sizeof(out->mark), "%s", PQgetvalue(r, 0, 1));
	}
	PQclear(r);
	return rows > 0 ? 1 : rows;
}

struct bases *bases_new(unsigned max_cached)
{
	struct bases *b = calloc(1, sizeof(*b));

	if (!b || !(b->cache = base_cache_new(max_cached))) {
		free(b);
		return NULL;
	}
	b->max_cached = max_cached;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void bases_free(struct bases *b)
{
	if (!b)
		return;
	base_cache_free(b->cache);
	free(b);
}

void bases_release(struct bases *b, const struct cached_base *cached)
{
	base_cache_release(b->cache, cached);
}

void bases_drop(struct bases *b, int base)
{
	base_cache_drop(b->cache, base);
}

const struct cached_base *bases_acquire_cached(struct bases *b, int base)
{
	return base_cache_acquire(b->cache, base);
}

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

/* One allocation, so that the cache can free it. */
static struct base_metadata *metadata_new(int class, int accepted_from, const char *shape, const char *drift,
					  const char *facts, const PGresult *fields)
{
	size_t n = PQntuples(fields), room = strlen(facts) + 1 + (drift ? strlen(drift) + 1 : 0);
	struct base_metadata *meta;
	char *at;

	for (size_t i = 0; i < n; i++)
		room += strlen(PQgetvalue(fields, i, OBJECT)) + strlen(PQgetvalue(fields, i, NAME)) + 2;
	if (!(meta = malloc(sizeof(*meta) + n * sizeof(*meta->facts) + room)))
		return NULL;
	*meta = (struct base_metadata){ .class = class, .accepted_from = accepted_from,
					.facts = (struct base_field_fact *) (meta + 1) };
	snprintf(meta->shape, sizeof(meta->shape), "%s", shape);
	at = (char *) (meta->facts + n);
	meta->facts_text = add_text_at(&at, facts);
	if (drift)
		meta->drift = add_text_at(&at, drift);
	for (size_t i = 0; i < n; i++)
		meta->facts[i] = (struct base_field_fact){ add_text_at(&at, PQgetvalue(fields, i, OBJECT)),
						      add_text_at(&at, PQgetvalue(fields, i, NAME)) };
	return meta;
}

static void metadata_set_names(struct base_metadata *meta, const char *sha256, const char *layout, const char *mark)
{
	memcpy(meta->sha256, sha256, HASH_HEX);
	snprintf(meta->layout.id, sizeof(meta->layout.id), "%s", layout);
	snprintf(meta->layout.mark, sizeof(meta->layout.mark), "%s", mark);
}

static int column_decompress(const PGresult *r, int column, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	int rc;

	if (db_bytes(r, 0, column, &packed))
		return err_set(e, "out of memory");
	rc = pack_open(PACK_BASE, packed.data, packed.len, NULL, 0, BASE_MAX, out, e);
	buf_free(&packed);
	return rc;
}

/* Load a base with its latest layout into the cache. 0, 1 when it is deleted or unreadable, -1. */
static int load_base(struct bases *b, struct db *db, const char *base, struct err *e)
{
	enum { BYTES, CLASS, ACCEPTED_FROM, SHAPE, DRIFT, SHA256, LAYOUT, MARK };
	struct buf text = {0}, facts = {0};
	char sha256[HASH_HEX];
	struct cached_base cached = { .base = atoi(base) };
	PGresult *fields = NULL;
	PGresult *r = db_query(db, e, "SELECT b.bytes, b.class, c.accepted_from, b.shape, b.drift, encode(b.sha256,"
				      " 'hex'), f.id, f.mark FROM base b JOIN class c ON c.id = b.class"
			       " JOIN layout f ON f.base = b.id AND f.kind <> 'patch' WHERE b.id = $1"
			       " ORDER BY f.id DESC LIMIT 1", 1, &DB_TEXT(base));
	int rc = -1;

	if (!r)
		goto done;
	if (!PQntuples(r)) {
		err_set(e, "base %s does not exist any more", base);
		rc = 1;
		goto done;
	}
	if (column_decompress(r, BYTES, &text, e)) {
		err_within(e, "base %s", base);
		rc = 1;
		goto done;
	}
	if (facts_load(db, base, &facts, e) || !(fields = load_fields(db, PQgetvalue(r, 0, LAYOUT), e)) ||
	    fields_of(fields, &cached.layout, e))
		goto done;
	hash_hex(text.data, text.len, sha256);
	if (strcmp(sha256, PQgetvalue(r, 0, SHA256))) {
		field_layout_free(&cached.layout);
		err_set(e, "base %s: the stored document does not match its hash", base);
		rc = 1;
		goto done;
	}
	cached.layout_id = atoi(PQgetvalue(r, 0, LAYOUT));
	cached.text = text.data;
	cached.len = text.len;
	cached.metadata = metadata_new(atoi(PQgetvalue(r, 0, CLASS)), atoi(PQgetvalue(r, 0, ACCEPTED_FROM)),
				 PQgetvalue(r, 0, SHAPE),
			      PQgetisnull(r, 0, DRIFT) ? NULL : PQgetvalue(r, 0, DRIFT), facts.data, fields);
	if (cached.metadata)
		metadata_set_names(cached.metadata, sha256, PQgetvalue(r, 0, LAYOUT), PQgetvalue(r, 0, MARK));
	text = (struct buf){0};
	if (!cached.metadata) {
		free(cached.text);
		field_layout_free(&cached.layout);
		err_set(e, "out of memory");
	} else if (base_cache_add(b->cache, &cached)) {
		err_set(e, "out of memory");
	} else {
		rc = 0;
	}
done:
	buf_free(&text);
	buf_free(&facts);
	PQclear(r);
	PQclear(fields);
	return rc;
}

const struct cached_base *bases_acquire_exact(struct bases *b, struct db *db, const char *base, const char *sha256,
					      const char *mark, struct err *e)
{
	for (bool loaded = false;; loaded = true) {
		const struct cached_base *cached = base_cache_acquire(b->cache, atoi(base));
		const struct base_metadata *meta = cached ? cached->metadata : NULL;

		/* A layout stored meanwhile does as well. */
		if (meta && !strcmp(meta->sha256, sha256) && (!mark || loaded || !strcmp(meta->layout.mark, mark)))
			return cached;
		if (cached)
			base_cache_release(b->cache, cached);
		if (loaded) {
			err_set(e, "base %s is being changed; retry", base);
			return NULL;
		}
		if (load_base(b, db, base, e))
			return NULL;
	}
}

const struct cached_base *bases_acquire(struct bases *b, struct db *db, int base, struct err *e)
{
	const struct cached_base *cached = NULL;
	char key[DB_KEY];
	PGresult *r;

	snprintf(key, sizeof(key), "%d", base);
	if (!(r = db_query_prepared(db, e, "SELECT encode(b.sha256, 'hex'), f.mark FROM base b JOIN layout f ON f.base"
					   " = b.id"
			   " AND f.kind <> 'patch' WHERE b.id = $1 ORDER BY f.id DESC LIMIT 1", 1, &DB_TEXT(key))))
		return NULL;
	if (PQntuples(r)) {
		cached = bases_acquire_exact(b, db, key, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), e);
	} else {
		base_cache_drop(b->cache, base);
		err_set(e, "base %d does not exist any more", base);
	}
	PQclear(r);
	return cached;
}

/* Newer than the last layout seen, if the database still has that one. */
#define NEW_LAYOUTS "SELECT * FROM (SELECT DISTINCT ON (base) base, id, mark FROM layout WHERE kind <> 'patch' AND id" \
	" > coalesce(" \
	"(SELECT f.id FROM layout f WHERE " LAYOUT_IS("$1::int", "$2::uuid") "), 0) ORDER BY base, id DESC) f ORDER" \
	" BY id DESC LIMIT $3"

int bases_refresh(struct bases *b, struct db *db, struct err *e)
{
	char limit[16];
	PGresult *r;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	snprintf(limit, sizeof(limit), "%u", b->max_cached);
	r = db_query_prepared(db, e, NEW_LAYOUTS, 3,
			      (struct db_value[]){ DB_TEXT(*b->seen.id ? b->seen.id : NULL),
						   DB_TEXT(*b->seen.id ? b->seen.mark : NULL), DB_TEXT(limit) });
	for (int i = r ? PQntuples(r) : 0; rc >= 0 && i-- > 0;)
		if ((rc = load_base(b, db, PQgetvalue(r, i, 0), e)) > 0)
			log_error("%s", e->text);
	if (r && rc >= 0 && PQntuples(r)) {
		snprintf(b->seen.id, sizeof(b->seen.id), "%s", PQgetvalue(r, 0, 1));
		snprintf(b->seen.mark, sizeof(b->seen.mark), "%s", PQgetvalue(r, 0, 2));
	}
	PQclear(r);
	pthread_mutex_unlock(&b->lock);
	return r && rc >= 0 ? 0 : -1;
}

/* --- deleted rows --- */

struct cached_keys {
	struct buf base, layout, mark;
};

static void add_keys(const struct cached_base *cached, void *user)
{
	const struct base_metadata *meta = cached->metadata;
	struct cached_keys *n = user;

	db_array_number(&n->base, cached->base);
	db_array_text(&n->layout, meta->layout.id);
	db_array_text(&n->mark, meta->layout.mark);
}

int bases_verify(struct bases *b, struct db *db, struct err *e)
{
	struct cached_keys n = {0};
	PGresult *r = NULL;

	db_array(&n.base);
	db_array(&n.layout);
	db_array(&n.mark);
	base_cache_each(b->cache, add_keys, &n);
	db_array_end(&n.base);
	db_array_end(&n.layout);
	db_array_end(&n.mark);
	if (n.base.failed || n.layout.failed || n.mark.failed)
		err_set(e, "out of memory");
	else
		r = db_query(db, e, "SELECT u.base FROM unnest($1::int[], $2::int[], $3::uuid[]) AS u(base, id, mark)"
			     " WHERE NOT EXISTS (SELECT 1 FROM layout f WHERE f.base = u.base AND " LAYOUT_IS("u.id",
												      "u.mark") ")", 3,
			     (struct db_value[]){ DB_TEXT(n.base.data), DB_TEXT(n.layout.data), DB_TEXT(n.mark.data) });
	for (int i = 0; r && i < PQntuples(r); i++)
		base_cache_drop(b->cache, atoi(PQgetvalue(r, i, 0)));
	PQclear(r);
	buf_free(&n.base);
	buf_free(&n.layout);
	buf_free(&n.mark);
	return r ? 0 : -1;
}

void bases_clear(struct bases *b)
{
	pthread_mutex_lock(&b->lock);
	base_cache_clear(b->cache);
	b->seen = (struct layout_key){0};
	pthread_mutex_unlock(&b->lock);
}

/* --- wider layouts --- */

enum { A_LINE, A_START, A_LEN, A_KEEP_START, A_KEEP_END, A_ALIAS, A_FIXED, A_DIGITS, A_PAGES, A_AT, A_WIDTH,
       A_ORDINAL, A_BEFORE, A_MIDDLE, A_AFTER, COLUMNS };

static void add_text(struct buf *column, const char *text, size_t len)
{
	struct buf copy = {0};

	buf_add(&copy, text, len);
	if (copy.failed)
		column->failed = true;
	else
		db_array_text(column, copy.data);
	buf_free(&copy);
}

static const char *value_of(const struct cached_base *cached, const struct field *f)
{
	return cached->text + cached->lines.starts[f->line] + f->start;
}

static bool stands_behind(const struct cached_base *cached, const struct field *f, const char *what)
{
	return f->start > strlen(what) && !strncmp(value_of(cached, f) - strlen(what), what, strlen(what));
}

/* A count of pages whose alias is a memory size. */
static bool is_pages(const struct cached_base *cached, const struct field_layout *layout, size_t i)
{
	const struct field *f = &layout->fields[i];

	return f->alias >= 0 && stands_behind(cached, f, " count=\"") &&
		stands_behind(cached, &layout->fields[f->alias], "local_memory=\"");
}

static void add_field(struct buf column[COLUMNS], const struct cached_base *cached, const struct field_layout *layout,
		      size_t i)
{
	const struct field *f = &layout->fields[i];
	const char *value = value_of(cached, f);
	unsigned at, width, ordinal;

	field_layout_position(layout, i, &at, &width, &ordinal);
	db_array_number(&column[A_LINE], f->line);
	db_array_number(&column[A_START], f->start);
	db_array_number(&column[A_LEN], f->len);
	db_array_number(&column[A_KEEP_START], f->keep_start);
	db_array_number(&column[A_KEEP_END], f->keep_end);
	db_array_number(&column[A_ALIAS], f->alias);
	db_array_text(&column[A_FIXED], f->fixed ? "t" : "f");
	db_array_number(&column[A_DIGITS], f->digits);
	db_array_text(&column[A_PAGES], is_pages(cached, layout, i) ? "t" : "f");
	db_array_number(&column[A_AT], at);
	db_array_number(&column[A_WIDTH], width);
	db_array_number(&column[A_ORDINAL], ordinal);
	add_text(&column[A_BEFORE], value, f->keep_start);
	add_text(&column[A_MIDDLE], value + f->keep_start, f->len - f->keep_start - f->keep_end);
	add_text(&column[A_AFTER], value + f->len - f->keep_end, f->keep_end);
}

#define FIELD_COLUMNS "line, start, len, keep_start, keep_end, alias, fixed, digits, pages, at, width, ordinal," \
	" before, middle, after"
#define INSERT_FIELDS "INSERT INTO field (layout, n, " FIELD_COLUMNS ") SELECT $16::int, n - 1, " FIELD_COLUMNS \
	" FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::bool[], $8::int[]," \
	" $9::bool[]," \
	" $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[]) WITH ORDINALITY AS" \
	" u(" FIELD_COLUMNS ", n)"

static int insert_fields(struct db *db, const char *id, const struct cached_base *cached,
			 const struct field_layout *layout,
			 struct err *e)
{
	struct buf column[COLUMNS] = {0};
	struct db_value v[COLUMNS + 1];
	bool failed = false;
	int rc;

	for (size_t c = 0; c < COLUMNS; c++)
		db_array(&column[c]);
	for (size_t i = 0; i < layout->n; i++)
		add_field(column, cached, layout, i);
	for (size_t c = 0; c < COLUMNS; c++) {
		db_array_end(&column[c]);
		failed |= column[c].failed;
		v[c] = DB_TEXT(column[c].data);
	}
	v[COLUMNS] = DB_TEXT(id);
	rc = failed ? err_set(e, "out of memory") :
		db_execute(db, e, INSERT_FIELDS, COLUMNS + 1, v);
	for (size_t c = 0; c < COLUMNS; c++)
		buf_free(&column[c]);
	return rc;
}

/* Locks the base's row, so that layouts of one base are stored one after another. 0, 1 when it is deleted, -1. */
static int store_layout(struct db *db, const char *base, const struct cached_base *cached,
			const struct field_layout *wider,
			struct err *e)
{
	const struct base_metadata *meta = cached->metadata;
	struct layout_key latest;
	char id[DB_KEY];
	int rc = db_execute(db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = db_query_key(db, id, e, "SELECT id FROM base WHERE id = $1 AND sha256 = decode($2, 'hex') FOR"
					       " UPDATE", 2,
			    (struct db_value[]){ DB_TEXT(base), DB_TEXT(meta->sha256) });
	if (rc == 1)
		rc = layout_key_query(db, &latest, e, "SELECT id, mark FROM layout WHERE base = $1 AND kind <> 'patch'"
				  " ORDER BY id DESC LIMIT 1", 1, &DB_TEXT(base));
	if (rc == 1 && !strcmp(latest.id, meta->layout.id) && !strcmp(latest.mark, meta->layout.mark)) {
		rc = db_query_key(db, id, e, "INSERT INTO layout (base, kind, shape) SELECT id, 'fields', shape"
				  " FROM base WHERE id = $1 RETURNING id", 1, &DB_TEXT(base));
		if (rc == 1 && insert_fields(db, id, cached, wider, e))
			rc = -1;
	}
	if (rc == 1 && db_execute(db, e, "COMMIT", 0, NULL) == 0)
		return 0;
	db_execute(db, NULL, "ROLLBACK", 0, NULL);
	return rc == 0 ? 1 : -1;
}

int bases_widen(struct bases *b, struct db *db, const struct cached_base *cached, const struct field_layout *wider,
		struct err *e)
{
	const struct cached_base *now;
	char base[DB_KEY];
	int rc = 0;

	snprintf(base, sizeof(base), "%d", cached->base);
	pthread_mutex_lock(&b->lock);
	now = base_cache_acquire(b->cache, cached->base);
	if (!now || now->layout_id == cached->layout_id)
		rc = store_layout(db, base, cached, wider, e);
	if (rc == 0 && (!now || now->layout_id == cached->layout_id))
		rc = load_base(b, db, base, e);
	if (now)
		base_cache_release(b->cache, now);
	if (rc == 1)
		base_cache_drop(b->cache, cached->base);
	pthread_mutex_unlock(&b->lock);
	return rc < 0 ? -1 : 0;
}

int bases_encode(struct bases *b, const struct bases_encoder *by, const struct buf *xml,
		 const struct cached_base **cached, struct buf *diff, struct err *e)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		struct field_layout wider;
		struct buf found = {0};
		int rc = base_cache_match(b->cache, xml->data, xml->len, by->rank, by->user, cached, &found, &wider);
		struct db *db;

		if (rc < 0)
			return 1;
		if (rc) {
			rc = (db = by->connect(by->user, e)) && !bases_widen(b, db, *cached, &wider, e) ? 1 : -1;
			field_layout_free(&wider);
		} else if (found.failed ? err_set(e, "out of memory") :
					  cached_base_check(*cached, &found, xml->data, xml->len, e)) {
			rc = -1;
		} else {
			*diff = found;
			return 0;
		}
		buf_free(&found);
		base_cache_release(b->cache, *cached);
		if (rc < 0)
			return -1;
	}
	return 1;
}

int bases_invalidate(struct bases *b, struct db *db, int base, struct err *e)
{
	const struct cached_base *cached = bases_refresh(b, db, e) ? NULL : bases_acquire(b, db, base, e);
	int rc = cached ? bases_widen(b, db, cached, &cached->layout, e) : -1;

	if (cached)
		base_cache_release(b->cache, cached);
	return rc;
}

/* --- decoding --- */

int decoder_open(struct bases *b, struct db *db, const char *layout, struct base_decoder *out, struct err *e)
{
	enum { BASE, KIND, MARK, SHA256 };
	struct base_decoder d = {0};
	const struct base_metadata *meta;
	PGresult *fields = NULL;
	PGresult *r = db_query_prepared(db, e, "SELECT f.base, f.kind, f.mark, encode(b.sha256, 'hex') FROM layout f"
			       " JOIN base b ON b.id = f.base WHERE f.id = $1", 1, &DB_TEXT(layout));
	int rc = -1;

	if (!r)
		return -1;
	if (!PQntuples(r)) {
		err_set(e, "field layout %s does not exist any more", layout);
		goto done;
	}
	d.patch = !strcmp(PQgetvalue(r, 0, KIND), "patch");
	if (!(d.cached = bases_acquire_exact(b, db, PQgetvalue(r, 0, BASE), PQgetvalue(r, 0, SHA256), NULL, e)))
		goto done;
	meta = d.cached->metadata;
	d.latest = !strcmp(PQgetvalue(r, 0, MARK), meta->layout.mark);
	if (!d.patch && !d.latest && (!(fields = load_fields(db, layout, e)) || fields_of(fields, &d.own, e))) {
		decoder_close(b, &d);
		goto done;
	}
	*out = d;
	rc = 0;
done:
	PQclear(fields);
	PQclear(r);
	return rc;
}

bool decoder_open_cached(struct bases *b, int base, const struct layout_key *layout, struct base_decoder *out)
{
	const struct cached_base *cached = base_cache_acquire(b->cache, base);

	if (!cached)
		return false;
	if (strcmp(((const struct base_metadata *) cached->metadata)->layout.mark, layout->mark)) {
		base_cache_release(b->cache, cached);
		return false;
	}
	*out = (struct base_decoder){ .cached = cached, .latest = true };
	return true;
}

void decoder_close(struct bases *b, struct base_decoder *d)
{
	if (d->cached)
		base_cache_release(b->cache, d->cached);
	field_layout_free(&d->own);
	*d = (struct base_decoder){0};
}

int decoder_run(const struct base_decoder *d, const struct buf *diff, size_t max, const char *sha256, struct buf *out,
		struct err *e)
{
	const char *data = diff->data ? diff->data : "";
	char found[HASH_HEX];
	int rc = d->patch
		? pack_open(PACK_PATCH, data, diff->len, d->cached->text, d->cached->len, max, out, e)
		: field_layout_decode(d->latest ? &d->cached->layout : &d->own, &d->cached->lines, data, diff->len, max,
				      out, e);

	if (rc == 0) {
		hash_hex(out->data, out->len, found);
		if (strcmp(found, sha256))
			rc = err_set(e, "the hash of the rebuilt document differs from the one that the node signed");
	}
	if (rc)
		buf_free(out);
	return rc;
}
