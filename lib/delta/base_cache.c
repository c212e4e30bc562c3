/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "delta/base_cache.h"

#include <assert.h>
#include <pthread.h>

#define CANDIDATES_MAX 64	/* bases with as many lines as the document that are compared */
#define MATCHES_MAX 8		/* matching bases among which the best is chosen */

/* In the cache, or dropped from it while callers still refer to it. */
struct cache_entry {
	struct cached_base base;	/* must be first: base_cache_release casts it back */
	unsigned refs;			/* including the cache's own */
	struct cache_entry *next;
};

struct base_cache {
	pthread_mutex_t lock;
	struct cache_entry *first;	/* most recently used first */
	unsigned max;
};

struct base_cache *base_cache_new(unsigned max)
{
	struct base_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->max = max;
	return c;
}

static void cached_base_free(struct cached_base *b)
{
	line_index_free(&b->lines);
	field_layout_free(&b->layout);
	free(b->text);
	free(b->metadata);
}

/* The functions from here to base_cache_remove are called with the lock held. */
static void entry_unref(struct cache_entry *entry)
{
	assert(entry->refs);
	if (--entry->refs)
		return;
	cached_base_free(&entry->base);
	free(entry);
}

/* The link to the entry with this key, or the last link, which is NULL. */
static struct cache_entry **entry_find(struct base_cache *c, int base)
{
	struct cache_entry **at = &c->first;

	while (*at && (*at)->base.base != base)
		at = &(*at)->next;
	return at;
}

static struct cache_entry *entry_unlink(struct cache_entry **at)
{
	struct cache_entry *entry = *at;

	*at = entry->next;
	return entry;
}

static void entry_push_front(struct base_cache *c, struct cache_entry *entry)
{
	entry->next = c->first;
	c->first = entry;
}

static void base_cache_remove(struct base_cache *c, int base)
{
	struct cache_entry **at = entry_find(c, base);

	if (*at)
		entry_unref(entry_unlink(at));
}

void base_cache_clear(struct base_cache *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->first)
		entry_unref(entry_unlink(&c->first));
	pthread_mutex_unlock(&c->lock);
}

void base_cache_each(struct base_cache *c, void (*each)(const struct cached_base *b, void *user), void *user)
{
	pthread_mutex_lock(&c->lock);
	for (const struct cache_entry *entry = c->first; entry; entry = entry->next)
		each(&entry->base, user);
	pthread_mutex_unlock(&c->lock);
}

void base_cache_free(struct base_cache *c)
{
	if (!c)
		return;
	base_cache_clear(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int base_cache_add(struct base_cache *c, struct cached_base *b)
{
	struct cache_entry *entry = malloc(sizeof(*entry)), **at;

	b->lines = (struct line_index){0};
	if (!entry || line_index_build(b->text, b->len, &b->lines)) {
		cached_base_free(b);
		free(entry);
		return -1;
	}
	*entry = (struct cache_entry){ .base = *b, .refs = 1 };
	pthread_mutex_lock(&c->lock);
	base_cache_remove(c, b->base);
	entry_push_front(c, entry);
	at = &c->first;
	for (unsigned n = 0; *at && n < c->max; n++)
		at = &(*at)->next;
	while (*at)
		entry_unref(entry_unlink(at));
	pthread_mutex_unlock(&c->lock);
	return 0;
}

void base_cache_drop(struct base_cache *c, int base)
{
	pthread_mutex_lock(&c->lock);
	base_cache_remove(c, base);
	pthread_mutex_unlock(&c->lock);
}

const struct cached_base *base_cache_acquire(struct base_cache *c, int base)
{
	struct cache_entry **at, *entry = NULL;

	pthread_mutex_lock(&c->lock);
	at = entry_find(c, base);
	if (*at) {
		entry = entry_unlink(at);
		entry_push_front(c, entry);
		entry->refs++;
	}
	pthread_mutex_unlock(&c->lock);
	return entry ? &entry->base : NULL;
}

void base_cache_release(struct base_cache *c, const struct cached_base *b)
{
	pthread_mutex_lock(&c->lock);
	entry_unref((struct cache_entry *)b);
	pthread_mutex_unlock(&c->lock);
}

int cached_base_check(const struct cached_base *b, const struct buf *diff, const char *doc, size_t len, struct err *e)
{
	struct buf again = {0};
	int rc = field_layout_decode(&b->layout, &b->lines, diff->data ? diff->data : "", diff->len, len, &again, e);

	if (rc == 0 && (again.len != len || memcmp(again.data, doc, len)))
		rc = err_set(e, "base %d: the encoded document does not decode to the original", b->base);
	buf_free(&again);
	return rc;
}

/* --- matching a document --- */

static unsigned lines_count(const char *doc, size_t len)
{
	unsigned n = len && doc[len - 1] != '\n';
	const char *nl;

	for (size_t at = 0; at < len && (nl = memchr(doc + at, '\n', len - at)); at = nl + 1 - doc)
		n++;
	return n;
}

struct base_match {
	struct cache_entry *entry;
	struct buf diff;
	struct field_layout wider;	/* n 0: none */
	bool exact;
	int rank;
};

struct ranking {
	int (*rank)(const struct cached_base *b, const void *user);
	const void *user;
};

static void match_free(struct base_match *m)
{
	buf_free(&m->diff);
	field_layout_free(&m->wider);
}

/* 0 and the stored fields of doc; 1 when it differs from the base in more; -1 when memory is short. */
static int match_try(struct cache_entry *entry, const char *doc, size_t len, struct base_match *out)
{
	const struct cached_base *b = &entry->base;
	struct base_match m = { .entry = entry };
	bool widened;
	int rc = field_layout_encode(&b->layout, &b->lines, doc, len, &m.diff);

	m.exact = !rc;
	if (rc > 0 && !(rc = field_layout_widen(&b->layout, &b->lines, doc, len, &m.wider, &widened)))
		rc = field_layout_encode(&m.wider, &b->lines, doc, len, &m.diff);
	if (rc)
		match_free(&m);
	else
		*out = m;
	return rc;
}

static struct base_match match_best(struct cache_entry *const *candidates, size_t n, const char *doc, size_t len,
				    const struct ranking *ranking)
{
	struct base_match best = {0}, m;
	unsigned matches = 0;

	for (size_t i = 0; i < n && matches < MATCHES_MAX; i++) {
		int rank = ranking->rank ? ranking->rank(&candidates[i]->base, ranking->user) : 0;

		if (rank < 0 || match_try(candidates[i], doc, len, &m))
			continue;
		m.rank = rank;
		matches++;
		/* The least rank, then one that need not be widened, then the fewest bytes. */
		if (!best.entry || (m.rank != best.rank ? m.rank < best.rank :
				    m.exact != best.exact ? m.exact : m.diff.len < best.diff.len)) {
			match_free(&best);
			best = m;
		} else {
			match_free(&m);
		}
	}
	return best;
}

int base_cache_match(struct base_cache *c, const char *doc, size_t len,
		     int (*rank)(const struct cached_base *b, const void *user), const void *user,
		     const struct cached_base **match, struct buf *diff, struct field_layout *wider)
{
	struct cache_entry *candidates[CANDIDATES_MAX], **at;
	unsigned lines = lines_count(doc, len);
	struct base_match m;
	size_t n = 0;

	/* All that may match are referenced, so that they can be compared without the lock. */
	pthread_mutex_lock(&c->lock);
	for (struct cache_entry *entry = c->first; entry && n < CANDIDATES_MAX; entry = entry->next)
		if (entry->base.lines.count == lines) {
			entry->refs++;
			candidates[n++] = entry;
		}
	pthread_mutex_unlock(&c->lock);
	m = match_best(candidates, n, doc, len, &(struct ranking){ rank, user });
	/* The match moves to the front if it is still in the cache. */
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < n; i++)
		if (candidates[i] != m.entry)
			entry_unref(candidates[i]);
	at = &c->first;
	while (m.entry && *at && *at != m.entry)
		at = &(*at)->next;
	if (m.entry && *at)
		entry_push_front(c, entry_unlink(at));
	pthread_mutex_unlock(&c->lock);
	if (!m.entry)
		return -1;
	*match = &m.entry->base;
	if (!m.exact) {
		*wider = m.wider;
		buf_free(&m.diff);
		return 1;
	}
	buf_add(diff, m.diff.data ? m.diff.data : "", m.diff.len);
	buf_free(&m.diff);
	return 0;
}

int base_cache_join(struct base_cache *c, const char *doc, size_t len, int key, int *base)
{
	struct cached_base b = { .base = key, .len = len };
	const struct cached_base *match = NULL;
	struct buf diff = {0}, text = {0};
	int rc = base_cache_match(c, doc, len, NULL, NULL, &match, &diff, &b.layout);

	buf_free(&diff);
	if (rc < 0 && key < 0)
		return 1;
	if (match) {
		b.base = match->base;
		b.len = match->len;
	}
	if (rc) {
		buf_add(&text, match ? match->text : doc, b.len);
		b.text = text.data;
	}
	if (match)
		base_cache_release(c, match);
	if (text.failed)
		field_layout_free(&b.layout);
	if (text.failed || (rc && base_cache_add(c, &b)))
		return -1;
	*base = b.base;
	return 0;
}
