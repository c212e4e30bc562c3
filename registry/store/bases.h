/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base_rows.h"

/*
 * Bases: whole documents in PostgreSQL against which others are stored, and a cache of them in memory. Called by
 * encoding, decoding and upkeep. The text, layouts and fields of a base never change once committed, so the cache needs
 * no invalidation between several topiaryd on one database. A base that moves to another class gets a new layout row,
 * which makes bases_refresh reload it.
 *
 * The database itself may be replaced, by a restored dump or by a standby that lacks the last commits; the same keys
 * then name other rows. So no key is trusted alone: a base is identified by key and hash, a layout by key and mark
 * (sql/0001_registry.sql), and every statement that reads or stores by a cached base compares them with the database's.
 */

struct bases;
struct bases *bases_new(unsigned max_cached);
void bases_free(struct bases *b);

/*
 * The base with this key in the database, with its latest layout; loaded when it is not cached. Release with
 * bases_release. NULL with an error.
 */
const struct cached_base *bases_acquire(struct bases *b, struct db *db, int base, struct err *e);
/*
 * The same for what a query found: with this hash, and with this layout, or a later one, unless mark is NULL. Loading
 * replaces a cached base of the same key.
 */
const struct cached_base *bases_acquire_exact(struct bases *b, struct db *db, const char *base, const char *sha256,
					      const char *mark, struct err *e);
/* The same from the cache alone, without a query; NULL when it is not cached. */
const struct cached_base *bases_acquire_cached(struct bases *b, int base);
void bases_release(struct bases *b, const struct cached_base *cached);
/* Remove a base from the cache. */
void bases_drop(struct bases *b, int base);

/* Load bases and layouts added since the last call, by any topiaryd. 0 or -1. */
int bases_refresh(struct bases *b, struct db *db, struct err *e);

/* Remove from the cache what the database lacks: rows were deleted, or the database was replaced. 0 or -1. */
int bases_verify(struct bases *b, struct db *db, struct err *e);
/* Empty the cache: it belongs to another database. */
void bases_clear(struct bases *b);

/*
 * Store a wider layout for a base, in a transaction of its own. If another process stored one meanwhile, that one is
 * loaded; if the base was deleted, it is dropped from the cache. In each case the caller compares again.
 * 0 or -1.
 */
int bases_widen(struct bases *b, struct db *db, const struct cached_base *cached, const struct field_layout *wider,
		struct err *e);

/*
 * Encode a document as fields of a cached base, the layout of which is widened if necessary: the one for which rank is
 * least, and not negative (base_cache_match). connect: for widening, NULL with an error. 0 with the base, to be
 * released, and what is stored, which was decoded and compared; 1 when it differs from each in more than fields; -1.
 */
struct bases_encoder {
	int (*rank)(const struct cached_base *b, const void *user);
	struct db *(*connect)(void *user, struct err *e);
	void *user;
};
int bases_encode(struct bases *b, const struct bases_encoder *by, const struct buf *xml,
		 const struct cached_base **cached, struct buf *diff, struct err *e);

/*
 * The class or the drift of a base changed: store a new layout row with the same fields, so that every topiaryd reloads
 * it. 0 or -1.
 */
int bases_invalidate(struct bases *b, struct db *db, int base, struct err *e);

/* Decoder of documents stored by one layout, of any age. Close with decoder_close. */
struct base_decoder {
	const struct cached_base *cached;	/* the base */
	bool patch;			/* else fields, of which there are none in a base's own layout */
	bool latest;			/* the layout is the cached base's; else it is in own */
	struct field_layout own;
};
int decoder_open(struct bases *b, struct db *db, const char *layout, struct base_decoder *out, struct err *e);
/* The same without a query: false unless this is the latest layout of a cached base. */
bool decoder_open_cached(struct bases *b, int base, const struct layout_key *layout, struct base_decoder *out);
void decoder_close(struct bases *b, struct base_decoder *d);

/*
 * Decode diff to out, which is empty: at most max bytes, whose hash is to be sha256, the one that the node signed.
 * 0, or -1 with out empty.
 */
int decoder_run(const struct base_decoder *d, const struct buf *diff, size_t max, const char *sha256, struct buf *out,
		struct err *e);
