/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/shelf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS 64	/* books of as many lines that are looked into */
#define MATCHES 8	/* of those that match: enough, for a choice */

/* On the shelf, or only in the hands of those who took it. */
struct held {
	struct book book;	/* first: who puts it back has no more */
	unsigned refs;		/* the shelf's own too */
	struct held *next;
};

struct shelf {
	pthread_mutex_t lock;
	struct held *first;	/* the latest used first */
	unsigned max;
};

struct shelf *shelf_new(unsigned max)
{
	struct shelf *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->max = max;
	return s;
}

static void book_free(struct book *b)
{
	lined_free(&b->lines);
	form_free(&b->fields);
	free(b->text);
	free(b->note);
}

/* With the lock held, as all of these. */
static void held_leave(struct held *h)
{
	if (--h->refs)
		return;
	book_free(&h->book);
	free(h);
}

/* The link to the book of this key, or the last link, which is NULL. */
static struct held **held_find(struct shelf *s, int base)
{
	struct held **at = &s->first;

	while (*at && (*at)->book.base != base)
		at = &(*at)->next;
	return at;
}

static struct held *held_unlink(struct held **at)
{
	struct held *h = *at;

	*at = h->next;
	return h;
}

static void held_front(struct shelf *s, struct held *h)
{
	h->next = s->first;
	s->first = h;
}

static void shelf_trim(struct shelf *s)
{
	struct held **at = &s->first;

	for (unsigned n = 0; *at && n < s->max; n++)
		at = &(*at)->next;
	while (*at)
		held_leave(held_unlink(at));
}

static void shelf_remove(struct shelf *s, int base)
{
	struct held **at = held_find(s, base);

	if (*at)
		held_leave(held_unlink(at));
}

void shelf_free(struct shelf *s)
{
	if (!s)
		return;
	while (s->first)
		held_leave(held_unlink(&s->first));
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int shelf_add(struct shelf *s, struct book *b)
{
	struct held *h = malloc(sizeof(*h));

	b->lines = (struct lined){0};
	if (!h || lined_make(b->text, b->len, &b->lines)) {
		book_free(b);
		free(h);
		return -1;
	}
	*h = (struct held){ .book = *b, .refs = 1 };
	pthread_mutex_lock(&s->lock);
	shelf_remove(s, b->base);
	held_front(s, h);
	shelf_trim(s);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void shelf_drop(struct shelf *s, int base)
{
	pthread_mutex_lock(&s->lock);
	shelf_remove(s, base);
	pthread_mutex_unlock(&s->lock);
}

const struct book *shelf_take(struct shelf *s, int base)
{
	struct held **at, *h = NULL;

	pthread_mutex_lock(&s->lock);
	at = held_find(s, base);
	if (*at) {
		h = held_unlink(at);
		held_front(s, h);
		h->refs++;
	}
	pthread_mutex_unlock(&s->lock);
	return h ? &h->book : NULL;
}

void shelf_put(struct shelf *s, const struct book *b)
{
	pthread_mutex_lock(&s->lock);
	held_leave((struct held *)b);
	pthread_mutex_unlock(&s->lock);
}

/* --- looking for a document's base --- */

static unsigned count_lines(const char *doc, size_t len)
{
	unsigned n = len && doc[len - 1] != '\n';
	const char *nl;

	for (size_t at = 0; at < len && (nl = memchr(doc + at, '\n', len - at)); at = nl + 1 - doc)
		n++;
	return n;
}

/* Take all that may match, so that they are compared without the lock. */
static size_t take_candidates(struct shelf *s, unsigned lines, struct held *out[LOOKS])
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (struct held *h = s->first; h && n < LOOKS; h = h->next)
		if (h->book.lines.count == lines) {
			h->refs++;
			out[n++] = h;
		}
	pthread_mutex_unlock(&s->lock);
	return n;
}

struct found {
	struct held *held;
	struct buf diff;
	struct form wider;	/* n 0: none */
	bool exact;
	int rank;
};

struct taste {
	int (*rank)(const struct book *b, const void *user);
	const void *user;
};

static void found_free(struct found *f)
{
	buf_free(&f->diff);
	form_free(&f->wider);
}

/* 0 and what the book keeps of doc; 1 when it does not match; -1 when memory is short. */
static int look_into(struct held *h, const char *doc, size_t len, struct found *out)
{
	const struct book *b = &h->book;
	struct found f = { .held = h };
	bool widened;
	int rc = form_encode(&b->fields, &b->lines, doc, len, &f.diff);

	f.exact = !rc;
	if (rc > 0 && !(rc = form_learn(&b->fields, &b->lines, doc, len, &f.wider, &widened)))
		rc = form_encode(&f.wider, &b->lines, doc, len, &f.diff);
	if (rc)
		found_free(&f);
	else
		*out = f;
	return rc;
}

static bool is_better(const struct found *a, const struct found *b)
{
	if (!b->held || a->rank != b->rank)
		return !b->held || a->rank < b->rank;
	if (a->exact != b->exact)
		return a->exact;
	return a->diff.len < b->diff.len;
}

static struct found find_best(struct held *const *candidates, size_t n, const char *doc, size_t len, const struct taste *taste)
{
	struct found best = {0}, f;
	unsigned matches = 0;

	for (size_t i = 0; i < n && matches < MATCHES; i++) {
		int rank = taste->rank ? taste->rank(&candidates[i]->book, taste->user) : 0;

		if (rank < 0 || look_into(candidates[i], doc, len, &f))
			continue;
		f.rank = rank;
		matches++;
		if (is_better(&f, &best)) {
			found_free(&best);
			best = f;
		} else {
			found_free(&f);
		}
	}
	return best;
}

/* Put all back but the one that was found, which moves to the front if it is still on the shelf. */
static void leave_candidates(struct shelf *s, struct held *const *candidates, size_t n, const struct held *found)
{
	struct held **at = &s->first;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < n; i++)
		if (candidates[i] != found)
			held_leave(candidates[i]);
	while (found && *at && *at != found)
		at = &(*at)->next;
	if (found && *at)
		held_front(s, held_unlink(at));
	pthread_mutex_unlock(&s->lock);
}

int shelf_find(struct shelf *s, const char *doc, size_t len, int (*rank)(const struct book *b, const void *user), const void *user,
	       const struct book **book, struct buf *diff, struct form *wider)
{
	struct held *candidates[LOOKS];
	size_t n = take_candidates(s, count_lines(doc, len), candidates);
	struct found f = find_best(candidates, n, doc, len, &(struct taste){ rank, user });

	leave_candidates(s, candidates, n, f.held);
	if (!f.held)
		return -1;
	*book = &f.held->book;
	if (!f.exact) {
		*wider = f.wider;
		buf_free(&f.diff);
		return 1;
	}
	buf_add(diff, f.diff.data ? f.diff.data : "", f.diff.len);
	buf_free(&f.diff);
	return 0;
}
