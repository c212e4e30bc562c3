/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_SHELF_H
#define TOPIARY_TOPO_SHELF_H

#include "topo/fields.h"
#include "topo/pack.h"

/*
 * Some bases with the latest form of each, in memory: what a document is compared with before anything else. Holds at most `max`
 * bases; the one unused for longest leaves first. The keys are the caller's (the registry's are those of its rows). Threads may share a
 * shelf: what is taken from it stays whole until it is put back.
 */
struct shelf;

struct book {
	int base, form;		/* keys */
	char *text;
	size_t len;
	struct lined lines;	/* of text */
	struct form fields;
	void *note;		/* the caller's, freed with free(3) */
};

struct shelf *shelf_new(unsigned max);
void shelf_free(struct shelf *s);

/*
 * Add a base, or a newer form for the one of the same key `base`; all of *b is the shelf's afterwards (text, fields, note; lines are
 * made here), also on failure. 0 or -1 when memory is short.
 */
int shelf_add(struct shelf *s, struct book *b);
void shelf_drop(struct shelf *s, int base);

/* The base of this key, or NULL. Put back with shelf_put. */
const struct book *shelf_take(struct shelf *s, int base);
void shelf_put(struct shelf *s, const struct book *b);

/*
 * The base from which doc differs in fields alone, with what its form keeps of doc appended to *diff: 0. Where the form is too narrow:
 * 1, *wider is what it must become (the caller frees it with form_free), diff untouched. No base: -1, all untouched. *book is to be
 * put back when 0 or 1. Of several bases it is the one of the lowest rank, then the one that keeps the fewest bytes; a negative rank
 * leaves one out; without rank all are equal.
 */
int shelf_find(struct shelf *s, const char *doc, size_t len, int (*rank)(const struct book *b, const void *user), const void *user,
	       const struct book **book, struct buf *diff, struct form *wider);

#endif
