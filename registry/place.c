/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "facts.h"
#include "new_base.h"

#define LOOKS 16		/* at the shelf, while others give the same base wider forms */
#define CANDIDATES "4"		/* bases that a patch is tried against */
#define PLAINLY_SMALL 64	/* alone a document shrinks 10 to 20 times; a patch far below that need not be compared with it */

/* Any number, as long as it is always the same. Held by the session, because forms are committed meanwhile. */
#define LOCK "SELECT pg_advisory_lock(1953460330)"
#define UNLOCK "SELECT pg_advisory_unlock(1953460330)"

struct job {
	struct db_pool *pool;
	const char *node;
	const struct buf *xml;
	int class;		/* 0: any */
	struct comparer with;	/* its db is taken when first needed */
	struct parsed parsed;	/* filled on the long way */
};

void placed_free(struct placed *p)
{
	buf_free(&p->diff);
	free(p->facts);
	drift_free(&p->drift);
	*p = (struct placed){0};
}

static int job_db(struct job *j, struct err *e)
{
	if (!j->with.db)
		j->with.db = db_take(j->pool, e);
	return j->with.db ? 0 : -1;
}

/* May a document of the class stand on the base? A class may be left for one that was accepted from it. */
static bool base_suits(const struct base_note *note, int class)
{
	return !class || note->class == class || note->accepted_from == class;
}

static void placed_note(struct placed *p, const struct book *book)
{
	const struct base_note *note = book->note;

	p->base = book->base;
	p->class = note->class;
	p->accepted_from = note->accepted_from;
}

/* --- the short way: fields of a base at hand --- */

static int rank(const struct book *book, const void *job)
{
	const struct base_note *note = book->note;

	if (!base_suits(note, ((const struct job *) job)->class))
		return -1;
	return note->drift ? 1 : 0;
}

static int fields_fill(const struct job *j, const struct book *book, struct buf *diff, struct placed *out, struct err *e)
{
	const struct base_note *note = book->note;

	if (book_gives_back(book, diff, j->xml, e) || drift_of_fields(book, j->xml, &out->drift, e))
		return -1;
	snprintf(out->form, sizeof(out->form), "%d", book->form);
	snprintf(out->shape, sizeof(out->shape), "%s", note->shape);
	placed_note(out, book);
	out->kind = "fields";
	out->stored_bytes = diff->len;
	out->diff = *diff;
	*diff = (struct buf){0};
	return 0;
}

/* 0, 1 when no base at hand differs from it in fields alone, -1. */
static int place_quickly(struct job *j, struct placed *out, struct err *e)
{
	for (int look = 0; look < LOOKS; look++) {
		const struct book *book;
		struct form wider;
		struct buf diff = {0};
		int found = shelf_find(bases_shelf(j->with.bases), j->xml->data, j->xml->len, rank, j, &book, &diff, &wider), rc;

		if (found < 0)
			return 1;
		if (found) {
			rc = job_db(j, e) || bases_widen(j->with.bases, j->with.db, book, &wider, e) ? -1 : 0;
			form_free(&wider);
		} else {
			rc = diff.failed ? err_set(e, "out of memory") : fields_fill(j, book, &diff, out, e);
			buf_free(&diff);
		}
		shelf_put(bases_shelf(j->with.bases), book);
		if (rc || !found)
			return rc;
	}
	return 1;
}

/* --- the long way: what the parser says of it --- */

static int add_shape(struct job *j, struct placed *out, struct err *e)
{
	const struct parsed *p = &j->parsed;
	char cores[16], pus[16], one[DB_KEY];
	struct db_value v[] = { DB_TEXT(out->shape), DB_TEXT(p->allocation), DB_TEXT(p->hierarchy), DB_TEXT(p->cores), DB_TEXT(cores),
				DB_TEXT(pus) };
	int rc;

	shape_name(p->allocation, out->shape);
	snprintf(cores, sizeof(cores), "%u", p->ncores);
	snprintf(pus, sizeof(pus), "%u", p->npus);
	if (db_do(j->with.db, e, "INSERT INTO shape (name, allocation, hierarchy, cores_only, cores, pus)"
		  " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", 6, v))
		return -1;
	rc = db_key(j->with.db, one, e, "SELECT 1 FROM shape WHERE name = $1 AND allocation = $2", 2, v);
	return rc == 0 ? err_set(e, "shape %s: another shape has this name", out->shape) : rc < 0 ? -1 : 0;
}

/* The smallest patch so far, and the base that it is against, in hand. */
struct choice {
	struct pack pack;
	const struct book *book;
};

static void choice_free(const struct job *j, struct choice *c)
{
	buf_free(&c->pack.bytes);
	if (c->book)
		shelf_put(bases_shelf(j->with.bases), c->book);
	*c = (struct choice){0};
}

static int consider(struct job *j, const char *base, struct choice *c, struct err *e)
{
	struct choice other = { .book = bases_take(j->with.bases, j->with.db, atoi(base), e) };

	if (!other.book)
		return -1;
	if (pack_make(other.book->text, other.book->len, j->xml->data, j->xml->len, &other.pack, e)) {
		choice_free(j, &other);
		return -1;
	}
	if (c->book && other.pack.bytes.len >= c->pack.bytes.len) {
		choice_free(j, &other);
	} else {
		choice_free(j, c);
		*c = other;
	}
	return 0;
}

#define OWN_BASE "(SELECT f.base FROM node n JOIN form f ON f.id = n.form WHERE n.name = $1)"
#define CANDIDATE_BASES "SELECT b.id FROM base b JOIN shape s ON s.name = b.shape JOIN class c ON c.id = b.class" \
	" WHERE $6::int = 0 OR b.class = $6::int OR c.accepted_from = $6::int" \
	" ORDER BY b.sha256 = decode($5, 'hex') DESC, b.id = " OWN_BASE " DESC NULLS LAST," \
	" b.shape = $2 DESC, s.hierarchy = $3 DESC, abs(s.cores - $4::int), b.id DESC LIMIT " CANDIDATES

/* The node's own base first, then those of machines most like it. They are at hand afterwards. */
static PGresult *candidates(struct job *j, const char *shape, struct err *e)
{
	char cores[16], class[16], sha256[HASH_HEX];

	hash_hex(j->xml->data, j->xml->len, sha256);
	snprintf(cores, sizeof(cores), "%u", j->parsed.ncores);
	snprintf(class, sizeof(class), "%d", j->class);
	return db_query(j->with.db, e, CANDIDATE_BASES, 6,
			(struct db_value[]){ DB_TEXT(j->node), DB_TEXT(shape), DB_TEXT(j->parsed.hierarchy), DB_TEXT(cores),
					     DB_TEXT(sha256), DB_TEXT(class) });
}

static bool plainly_small(const struct choice *c, const struct buf *xml)
{
	return c->book && c->pack.bytes.len <= xml->len / PLAINLY_SMALL;
}

/* 0 with a patch (or none at all) in c; 1 when the document was placed as fields of one of the candidates; -1. */
static int consider_all(struct job *j, struct choice *c, struct placed *out, struct err *e)
{
	PGresult *r = candidates(j, out->shape, e);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
		const struct book *book = bases_take(j->with.bases, j->with.db, atoi(PQgetvalue(r, i, 0)), e);

		if (book)
			shelf_put(bases_shelf(j->with.bases), book);
		else
			rc = -1;
	}
	if (rc == 0 && (rc = place_quickly(j, out, e)) >= 0)
		rc = !rc;
	for (int i = 0; rc == 0 && i < PQntuples(r) && !plainly_small(c, j->xml); i++)
		rc = consider(j, PQgetvalue(r, i, 0), c, e);
	PQclear(r);
	return rc;
}

static int patch_form(struct job *j, const struct choice *c, struct placed *out, struct err *e)
{
	char base[DB_KEY];
	struct db_value v[] = { DB_TEXT(base), DB_TEXT(out->shape) };
	int rc;

	snprintf(base, sizeof(base), "%d", c->book->base);
	rc = db_key(j->with.db, out->form, e, "SELECT id FROM form WHERE base = $1 AND kind = 'patch' AND shape = $2"
		    " ORDER BY id LIMIT 1", 2, v);
	if (rc == 0)
		rc = db_key(j->with.db, out->form, e, "INSERT INTO form (base, kind, shape) VALUES ($1, 'patch', $2) RETURNING id",
			    2, v);
	return rc == 1 ? 0 : -1;
}

static int place_patch(struct job *j, struct choice *c, struct placed *out, struct err *e)
{
	const struct base_note *note = c->book->note;
	struct buf facts = {0};

	if (patch_form(j, c, out, e) || drift_from_class(&j->with, note->class, j->node, j->xml, &out->drift, e))
		return -1;
	if (facts_differ(note->facts_text, j->parsed.facts, &facts, e)) {
		buf_free(&facts);
		return -1;
	}
	placed_note(out, c->book);
	out->kind = "patch";
	out->facts = facts.data;
	out->diff = c->pack.bytes;
	out->stored_bytes = out->diff.len;
	c->pack.bytes = (struct buf){0};
	return 0;
}

/* --- a base of its own --- */

/* In a transaction: 0, 1 when another class has a base to the very byte, -1. A new class has this base for its golden one. */
static int base_rows(struct job *j, struct placed *out, struct err *e)
{
	char class[DB_KEY], base[DB_KEY];
	struct new_base n = { .class = class, .shape = out->shape, .node = j->node, .drift = out->drift.json, .xml = j->xml,
			      .parsed = &j->parsed };
	struct db_value golden[] = { DB_TEXT(base), DB_TEXT(class) };
	int rc = db_do(j->with.db, e, "BEGIN", 0, NULL);

	snprintf(class, sizeof(class), "%d", j->class);
	if (rc == 0 && !j->class && db_key(j->with.db, class, e, "INSERT INTO class DEFAULT VALUES RETURNING id", 0, NULL) != 1)
		rc = -1;
	if (rc == 0)
		rc = base_insert(j->with.db, &n, base, out->form, e);
	if (rc == 0 && !j->class)
		rc = db_do(j->with.db, e, "UPDATE class SET golden = $1 WHERE id = $2", 2, golden);
	if (rc == 0)
		rc = db_do(j->with.db, e, "COMMIT", 0, NULL);
	if (rc)
		db_do(j->with.db, NULL, "ROLLBACK", 0, NULL);
	out->base = rc ? 0 : atoi(base);
	out->class = atoi(class);
	return rc;
}

/* The document is its own base, and has no diff. As base_rows. */
static int place_base(struct job *j, size_t alone, struct placed *out, struct err *e)
{
	int rc;

	if (j->class && drift_from_class(&j->with, j->class, j->node, j->xml, &out->drift, e))
		return -1;
	if ((rc = base_rows(j, out, e)) == 0) {
		out->kind = "base";
		out->stored_bytes = alone;
		return bases_refresh(j->with.bases, j->with.db, e);
	}
	drift_free(&out->drift);
	return rc;
}

/*
 * A thousand equal nodes boot at once: one of them becomes the base, and the others wait here to see it. A base of its own is worth it
 * when the patch is more than half of that.
 */
static int place_locked(struct job *j, struct choice *c, struct placed *out, struct err *e)
{
	struct pack alone;
	size_t len;
	int rc;

	if (bases_refresh(j->with.bases, j->with.db, e) || (rc = consider_all(j, c, out, e)) < 0)
		return -1;
	if (rc)
		return 0;
	if (pack_make(NULL, 0, j->xml->data, j->xml->len, &alone, e))
		return -1;
	len = alone.bytes.len;
	buf_free(&alone.bytes);
	rc = c->book && c->pack.bytes.len <= len / 2 ? 1 : place_base(j, len, out, e);
	if (rc > 0)
		rc = c->book ? place_patch(j, c, out, e) : err_set(e, "its base was made this moment; ask again");
	return rc;
}

/* Of a node that is known, the class, so that its change is told as one. */
static int find_class(struct job *j, struct err *e)
{
	char class[DB_KEY];
	int rc = db_key(j->with.db, class, e, "SELECT b.class FROM node n JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base"
			" WHERE n.name = $1", 1, &DB_TEXT(j->node));

	if (rc == 1)
		j->class = atoi(class);
	return rc < 0 ? -1 : 0;
}

static int place_slowly(struct job *j, struct placed *out, struct err *e)
{
	struct choice c = {0};
	int rc = -1;

	if (job_db(j, e) || find_class(j, e) || bases_refresh(j->with.bases, j->with.db, e) || add_shape(j, out, e) ||
	    (rc = consider_all(j, &c, out, e)))
		goto done;
	if (plainly_small(&c, j->xml)) {
		rc = place_patch(j, &c, out, e);
	} else if ((rc = db_do(j->with.db, e, LOCK, 0, NULL)) == 0) {
		rc = place_locked(j, &c, out, e);
		db_do(j->with.db, NULL, UNLOCK, 0, NULL);
	}
done:
	choice_free(j, &c);
	return rc < 0 ? -1 : 0;
}

enum place_result place_document(struct bases *b, struct db_pool *pool, struct parser *parser, const char *node, int class,
				 const struct buf *xml, struct placed *out, struct err *e)
{
	static const enum place_result parse_result[] = { PLACE_OK, PLACE_REFUSED, PLACE_FAILED };
	struct job j = { .pool = pool, .node = node, .xml = xml, .class = class, .with = { .bases = b, .parser = parser } };
	struct placed placed = {0};
	enum place_result result = PLACE_OK;
	int rc = place_quickly(&j, &placed, e);

	if (rc == 1 && (result = parse_result[parser_read(parser, node, xml, &j.parsed, e)]) == PLACE_OK)
		rc = place_slowly(&j, &placed, e);
	if (rc < 0) {
		err_within(e, "%s", node);
		result = PLACE_FAILED;
	}
	db_give(pool, j.with.db);
	parsed_free(&j.parsed);
	if (result == PLACE_OK)
		*out = placed;
	else
		placed_free(&placed);
	return result;
}
