/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_BASES_H
#define TOPIARY_REGISTRY_BASES_H

#include "db.h"
#include "topo/inventory.h"
#include "topo/shelf.h"

/*
 * The bases in PostgreSQL, and those of them that are at hand in memory. A base's text, forms and fields never change once they are
 * committed: what is at hand is as true as the database, and a second topiaryd on the same database needs to tell nobody. When a
 * base goes to another class, it gets a new form, which makes bases_refresh look at it again.
 */

/* What a field of the form holds, for words about it. */
struct field_fact {
	char *object, *name;
};

/* The note of a book (topo/shelf.h): one allocation, of which the pointers are parts. */
struct base_note {
	int class, accepted_from;	/* the latter 0: none */
	const char *facts_text;		/* of the base's document, as tree_facts writes them */
	char shape[SHAPE_NAME];
	const char *drift;		/* how the base differs from its class's golden one: JSON, or NULL */
	struct field_fact *facts;	/* facts[fields.n] */
};

struct bases;
struct bases *bases_new(unsigned at_hand);
void bases_free(struct bases *b);

struct shelf *bases_shelf(struct bases *b);

/* The base with this key, with its latest form, loaded when it is not at hand; shelf_put it on bases_shelf. NULL with an error. */
const struct book *bases_take(struct bases *b, struct db *db, int base, struct err *e);

/* Load bases and forms that were added since the last look, by whomever. 0 or -1. */
int bases_refresh(struct bases *b, struct db *db, struct err *e);

/*
 * Give a base a wider form, unless somebody else gave it another since: then that one is loaded, or deleted it: then it leaves the
 * shelf. In a transaction of its own. In each case the caller looks again with shelf_find. 0 or -1.
 */
int bases_widen(struct bases *b, struct db *db, const struct book *book, const struct form *wider, struct err *e);

/*
 * A base went to another class, or is told to drift from it anew: give it a new form with the same fields, which alone makes every
 * topiaryd look again. 0 or -1.
 */
int bases_show_again(struct bases *b, struct db *db, int base, struct err *e);

/* What the book's form makes of diff is this document, to the byte: 0, or -1 with an error. */
int book_gives_back(const struct book *book, const struct buf *diff, const struct buf *xml, struct err *e);

/* A form by its key, however old: what a document is made of. Close with opened_close. */
struct opened {
	const struct book *book;	/* the base */
	bool patch;			/* else fields, of which a base's own form has none */
	struct form fields;
};
int bases_open(struct bases *b, struct db *db, const char *form, struct opened *out, struct err *e);
void opened_close(struct bases *b, struct opened *o);

/* The document that a form makes of diff: at most max bytes, appended to out. 0 or -1. */
int opened_decode(const struct opened *o, const char *diff, size_t len, size_t max, struct buf *out, struct err *e);

#endif
