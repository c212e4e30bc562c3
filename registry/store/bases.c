/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bases.h"

#include <assert.h>
#include <pthread.h>

#include "base/log.h"

/*
 * Notes
 *
 * The cache has its own lock (delta/base_cache.h). `lock` is of `seen`, and is held while a base is widened, so that of
 * this process's threads one stores a layout of a base, and the others find it in the cache. It is taken before the
 * cache's, and while it is held PostgreSQL is waited for. Rows are read and written by base_rows.c; here is decided
 * what is loaded, kept and widened. Any thread may call, each with a connection of its own.
 */
#define ATTEMPTS 16		/* to encode, while other exports widen the same base */

struct bases {
	struct base_cache *cache;
	unsigned max_cached;
	pthread_mutex_t lock;	/* of what follows */
	struct layout_key seen;	/* the newest layout that bases_refresh saw */
};

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

/* Load a base with its latest layout into the cache. 0, 1 when it is deleted or unreadable, -1. */
static int load_base(struct bases *b, struct db *db, const char *base, struct err *e)
{
	struct cached_base loaded;
	int rc = base_rows_load(db, base, &loaded, e);

	return rc ? rc : base_cache_add(b->cache, &loaded) ? err_set(e, "out of memory") : 0;
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
	const struct db_value key = DB_NUMBER(base);
	PGresult *r = db_query_prepared(db, e, "SELECT encode(b.sha256, 'hex'), f.mark FROM base b JOIN layout f ON"
					" f.base = b.id AND f.kind <> 'patch' WHERE b.id = $1 ORDER BY f.id DESC"
					" LIMIT 1", 1, &key);

	if (r && PQntuples(r)) {
		cached = bases_acquire_exact(b, db, key.data, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), e);
	} else if (r) {
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
	const char *id = *b->seen.id ? b->seen.id : NULL;
	PGresult *r;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	r = db_query_prepared(db, e, NEW_LAYOUTS, 3, (struct db_value[]){
			DB_TEXT(id), DB_TEXT(id ? b->seen.mark : NULL), DB_NUMBER(b->max_cached) });
	for (int i = r ? PQntuples(r) : 0; rc >= 0 && i-- > 0;)
		if ((rc = load_base(b, db, PQgetvalue(r, i, 0), e)) > 0)
			log_error("%s", e->text);
	if (r && rc >= 0 && PQntuples(r))
		layout_key_read(r, 0, 1, &b->seen);
	PQclear(r);
	pthread_mutex_unlock(&b->lock);
	return r && rc >= 0 ? 0 : -1;
}

/* --- deleted rows --- */

enum { KEY_BASE, KEY_LAYOUT, KEY_MARK, KEYS };

static void add_keys(const struct cached_base *cached, void *user)
{
	const struct base_metadata *meta = base_metadata(cached);
	struct buf *keys = user;

	db_array_number(&keys[KEY_BASE], cached->base);
	db_array_text(&keys[KEY_LAYOUT], meta->layout.id);
	db_array_text(&keys[KEY_MARK], meta->layout.mark);
}

int bases_verify(struct bases *b, struct db *db, struct err *e)
{
	struct buf keys[KEYS] = {0};
	PGresult *r;

	base_cache_each(b->cache, add_keys, keys);
	r = db_query_arrays(db, false, "SELECT u.base FROM unnest($1::int[], $2::int[], $3::uuid[]) AS u(base, id,"
			    " mark) WHERE NOT EXISTS (SELECT 1 FROM layout f WHERE f.base = u.base AND "
			    LAYOUT_IS("u.id", "u.mark") ")", KEYS, keys, 0, NULL, e);
	for (int i = 0; r && i < PQntuples(r); i++)
		base_cache_drop(b->cache, atoi(PQgetvalue(r, i, 0)));
	PQclear(r);
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

int bases_widen(struct bases *b, struct db *db, const struct cached_base *cached, const struct field_layout *wider,
		struct err *e)
{
	const struct db_value key = DB_NUMBER(cached->base);
	const struct cached_base *now;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	now = base_cache_acquire(b->cache, cached->base);
	if (!now || now->layout_id == cached->layout_id) {
		rc = base_rows_widen(db, cached, wider, e);
		if (rc == 0)
			rc = load_base(b, db, key.data, e);
	}
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
	d.latest = !strcmp(PQgetvalue(r, 0, MARK), base_metadata(d.cached)->layout.mark);
	if (!d.patch && !d.latest && base_rows_fields(db, layout, &d.own, e)) {
		decoder_close(b, &d);
		goto done;
	}
	*out = d;
	rc = 0;
done:
	PQclear(r);
	return rc;
}

bool decoder_open_cached(struct bases *b, int base, const struct layout_key *layout, struct base_decoder *out)
{
	const struct cached_base *cached = base_cache_acquire(b->cache, base);

	if (cached && strcmp(base_metadata(cached)->layout.mark, layout->mark)) {
		base_cache_release(b->cache, cached);
		cached = NULL;
	}
	if (!cached)
		return false;
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
	int rc;

	assert(d->cached && !(d->patch && d->own.n));
	rc = d->patch ? pack_open(PACK_PATCH, data, diff->len, d->cached->text, d->cached->len, max, out, e) :
		field_layout_decode(d->latest ? &d->cached->layout : &d->own, &d->cached->lines, data, diff->len, max,
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
