/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "delta/field_layout.h"
#include "delta/pack.h"

/*
 * An LRU cache of bases with the latest field layout of each, which topiaryd (store/bases.c, upkeep/rebase.c)
 * and `topiary pack` compare a document with before anything else. Holds at most `max` bases. The keys are the caller's
 * (the registry's are those of its rows). Thread-safe: what base_cache_acquire and base_cache_match return stays valid,
 * also when the cache drops it, until base_cache_release.
 */
struct base_cache;

struct cached_base {
	int base, layout_id;		/* keys */
	char *text;
	size_t len;
	struct line_index lines;	/* of text */
	struct field_layout layout;
	void *metadata;		/* the caller's, freed with free(3) */
};

/* NULL when memory is short. */
struct base_cache *base_cache_new(unsigned max);
void base_cache_free(struct base_cache *c);

/*
 * Add a base, or replace the one with the same key `base` by a newer layout. The cache owns all of *b afterwards (text,
 * layout, metadata), also on failure; b->lines is set here. 0, or -1 when memory is short.
 */
int base_cache_add(struct base_cache *c, struct cached_base *b);
void base_cache_drop(struct base_cache *c, int base);
void base_cache_clear(struct base_cache *c);

/* Call each for every base, with the lock held: it must not call functions of the cache. */
void base_cache_each(struct base_cache *c, void (*each)(const struct cached_base *b, void *user), void *user);

/* The base with this key, or NULL. The caller passes it to base_cache_release. */
const struct cached_base *base_cache_acquire(struct base_cache *c, int base);
void base_cache_release(struct base_cache *c, const struct cached_base *b);

/* Check that the base's layout reproduces doc from diff, byte for byte: 0, or -1 with an error. */
int cached_base_check(const struct cached_base *b, const struct buf *diff, const char *doc, size_t len, struct err *e);

/*
 * Find a base from which doc differs only in the values of fields. 0: the layout of *match fits, and what it stores of
 * doc was appended to *diff. 1: the layout must be widened to *wider first (free with field_layout_free); diff
 * untouched. In both cases the caller passes *match to base_cache_release. -1: no such base, all untouched. Of several
 * bases the one of lowest rank is chosen, then the one that stores the fewest bytes; a base with a negative rank is
 * excluded; rank NULL: all are equal.
 */
int base_cache_match(struct base_cache *c, const char *doc, size_t len,
		     int (*rank)(const struct cached_base *b, const void *user), const void *user,
		     const struct cached_base **match, struct buf *diff, struct field_layout *wider);

/*
 * Group near-identical documents: the key of the base that doc matches, with its layout widened if necessary, in *base;
 * else doc becomes the base `key`. 0; 1, all untouched, if no base matches and key is negative; -1 when memory is
 * short.
 */
int base_cache_join(struct base_cache *c, const char *doc, size_t len, int key, int *base);
