/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "facts.h"
#include "topo/canon.h"

#define BASE_MAX CANON_MAX_BYTES

struct bases {
	struct shelf *shelf;
	unsigned at_hand;
	pthread_mutex_t lock;	/* of what follows */
	long seen;		/* the highest key of a form that a refresh came upon */
};

struct bases *bases_new(unsigned at_hand)
{
	struct bases *b = calloc(1, sizeof(*b));

	if (b && !(b->shelf = shelf_new(at_hand))) {
		free(b);
		return NULL;
	}
	if (!b)
		return NULL;
	b->at_hand = at_hand;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void bases_free(struct bases *b)
{
	if (!b)
		return;
	shelf_free(b->shelf);
	free(b);
}

struct shelf *bases_shelf(struct bases *b)
{
	return b->shelf;
}

/* Columns of the fields of a form, as load_fields and fields_of read them. */
#define FIELDS "w.line, w.start, w.len, w.keep_start, w.keep_end, w.alias, w.fixed, w.digits," \
	" coalesce(a.object, ''), coalesce(a.name, '')"
enum { LINE, START, LEN, KEEP_START, KEEP_END, ALIAS, FIXED, DIGITS, OBJECT, NAME };

static PGresult *load_fields(struct db *db, const char *form, struct err *e)
{
	return db_often(db, e, "SELECT " FIELDS " FROM field w JOIN form f ON f.id = w.form"
			" LEFT JOIN fact a ON a.base = f.base AND a.line = w.line"
			" WHERE w.form = $1 ORDER BY w.n", 1, &DB_TEXT(form));
}

static unsigned number(const PGresult *r, int row, int column)
{
	return strtoul(PQgetvalue(r, row, column), NULL, 10);
}

static int fields_of(const PGresult *r, struct form *out, struct err *e)
{
	struct form f = { calloc(PQntuples(r) + 1, sizeof(*f.fields)), PQntuples(r) };

	if (!f.fields)
		return err_set(e, "out of memory");
	for (int i = 0; i < PQntuples(r); i++)
		f.fields[i] = (struct field){
			.line = number(r, i, LINE), .start = number(r, i, START), .len = number(r, i, LEN),
			.keep_start = number(r, i, KEEP_START), .keep_end = number(r, i, KEEP_END),
			.alias = atoi(PQgetvalue(r, i, ALIAS)), .fixed = *PQgetvalue(r, i, FIXED) == 't',
			.digits = number(r, i, DIGITS),
		};
	*out = f;
	return 0;
}

static char *put(char **at, const char *text)
{
	char *here = *at;

	*at = stpcpy(here, text) + 1;
	return here;
}

/* One allocation for all of it, so that a shelf can free it without knowing what it is. */
static struct base_note *note_make(int class, int accepted_from, const char *shape, const char *drift, const char *facts,
				   const PGresult *fields)
{
	size_t n = PQntuples(fields), room = strlen(facts) + 1 + (drift ? strlen(drift) + 1 : 0);
	struct base_note *note;
	char *at;

	for (size_t i = 0; i < n; i++)
		room += strlen(PQgetvalue(fields, i, OBJECT)) + strlen(PQgetvalue(fields, i, NAME)) + 2;
	if (!(note = malloc(sizeof(*note) + n * sizeof(*note->facts) + room)))
		return NULL;
	*note = (struct base_note){ .class = class, .accepted_from = accepted_from, .facts = (struct field_fact *) (note + 1) };
	snprintf(note->shape, sizeof(note->shape), "%s", shape);
	at = (char *) (note->facts + n);
	note->facts_text = put(&at, facts);
	if (drift)
		note->drift = put(&at, drift);
	for (size_t i = 0; i < n; i++)
		note->facts[i] = (struct field_fact){ put(&at, PQgetvalue(fields, i, OBJECT)), put(&at, PQgetvalue(fields, i, NAME)) };
	return note;
}

static int unzip(const PGresult *r, int column, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	int rc;

	if (db_bytes(r, 0, column, &packed))
		return err_set(e, "out of memory");
	rc = pack_open(PACK_BASE, packed.data, packed.len, NULL, 0, BASE_MAX, out, e);
	buf_free(&packed);
	return rc;
}

/* Put a base with its latest form on the shelf. */
static int load(struct bases *b, struct db *db, const char *base, struct err *e)
{
	enum { BYTES, CLASS, ACCEPTED_FROM, SHAPE, DRIFT, SHA256, FORM };
	struct buf text = {0}, facts = {0};
	char sha256[HASH_HEX];
	struct book book = { .base = atoi(base) };
	PGresult *fields = NULL;
	PGresult *r = db_query(db, e, "SELECT b.bytes, b.class, c.accepted_from, b.shape, b.drift, encode(b.sha256, 'hex'),"
			       " (SELECT max(f.id) FROM form f WHERE f.base = b.id AND f.kind <> 'patch')"
			       " FROM base b JOIN class c ON c.id = b.class WHERE b.id = $1", 1, &DB_TEXT(base));
	int rc = -1;

	if (!r)
		goto done;
	if (!PQntuples(r) || PQgetisnull(r, 0, FORM)) {
		err_set(e, "base %s is no more", base);
		goto done;
	}
	if (facts_load(db, base, &facts, e) || !(fields = load_fields(db, PQgetvalue(r, 0, FORM), e)) ||
	    unzip(r, BYTES, &text, e) || fields_of(fields, &book.fields, e))
		goto done;
	hash_hex(text.data, text.len, sha256);
	if (strcmp(sha256, PQgetvalue(r, 0, SHA256))) {
		form_free(&book.fields);
		err_set(e, "base %s: what was stored is not what was sent", base);
		goto done;
	}
	book.form = atoi(PQgetvalue(r, 0, FORM));
	book.text = text.data;
	book.len = text.len;
	book.note = note_make(atoi(PQgetvalue(r, 0, CLASS)), atoi(PQgetvalue(r, 0, ACCEPTED_FROM)), PQgetvalue(r, 0, SHAPE),
			      PQgetisnull(r, 0, DRIFT) ? NULL : PQgetvalue(r, 0, DRIFT), facts.data, fields);
	text = (struct buf){0};
	if (!book.note) {
		free(book.text);
		form_free(&book.fields);
		err_set(e, "out of memory");
	} else if (shelf_add(b->shelf, &book)) {
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

const struct book *bases_take(struct bases *b, struct db *db, int base, struct err *e)
{
	const struct book *book = shelf_take(b->shelf, base);
	char key[16];

	if (book)
		return book;
	snprintf(key, sizeof(key), "%d", base);
	if (load(b, db, key, e))
		return NULL;
	if (!(book = shelf_take(b->shelf, base)))
		err_set(e, "base %d left the shelf at once", base);
	return book;
}

int bases_refresh(struct bases *b, struct db *db, struct err *e)
{
	char seen[24], limit[16];
	PGresult *r;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	snprintf(seen, sizeof(seen), "%ld", b->seen);
	snprintf(limit, sizeof(limit), "%u", b->at_hand);
	r = db_query(db, e, "SELECT base, max(id) FROM form WHERE kind <> 'patch' AND id > $1 GROUP BY base ORDER BY 2 DESC LIMIT $2",
		     2, (struct db_value[]){ DB_TEXT(seen), DB_TEXT(limit) });
	for (int i = r ? PQntuples(r) : 0; rc == 0 && i-- > 0;)
		rc = load(b, db, PQgetvalue(r, i, 0), e);
	if (r && rc == 0 && PQntuples(r))
		b->seen = atol(PQgetvalue(r, 0, 1));
	PQclear(r);
	pthread_mutex_unlock(&b->lock);
	return r ? rc : -1;
}

/* --- a wider form --- */

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

static const char *value_of(const struct book *book, const struct field *f)
{
	return book->text + book->lines.starts[f->line] + f->start;
}

static bool stands_behind(const struct book *book, const struct field *f, const char *what)
{
	return f->start > strlen(what) && !strncmp(value_of(book, f) - strlen(what), what, strlen(what));
}

/* A count of pages whose alias is a memory. */
static bool is_pages(const struct book *book, const struct form *form, size_t i)
{
	const struct field *f = &form->fields[i];

	return f->alias >= 0 && stands_behind(book, f, " count=\"") && stands_behind(book, &form->fields[f->alias], "local_memory=\"");
}

static void add_field(struct buf column[COLUMNS], const struct book *book, const struct form *form, size_t i)
{
	const struct field *f = &form->fields[i];
	const char *value = value_of(book, f);
	unsigned at, width, ordinal;

	form_place(form, i, &at, &width, &ordinal);
	db_array_number(&column[A_LINE], f->line);
	db_array_number(&column[A_START], f->start);
	db_array_number(&column[A_LEN], f->len);
	db_array_number(&column[A_KEEP_START], f->keep_start);
	db_array_number(&column[A_KEEP_END], f->keep_end);
	db_array_number(&column[A_ALIAS], f->alias);
	db_array_text(&column[A_FIXED], f->fixed ? "t" : "f");
	db_array_number(&column[A_DIGITS], f->digits);
	db_array_text(&column[A_PAGES], is_pages(book, form, i) ? "t" : "f");
	db_array_number(&column[A_AT], at);
	db_array_number(&column[A_WIDTH], width);
	db_array_number(&column[A_ORDINAL], ordinal);
	add_text(&column[A_BEFORE], value, f->keep_start);
	add_text(&column[A_MIDDLE], value + f->keep_start, f->len - f->keep_start - f->keep_end);
	add_text(&column[A_AFTER], value + f->len - f->keep_end, f->keep_end);
}

#define FIELD_COLUMNS "line, start, len, keep_start, keep_end, alias, fixed, digits, pages, at, width, ordinal, before, middle, after"
#define INSERT_FIELDS "INSERT INTO field (form, n, " FIELD_COLUMNS ") SELECT $16::int, n - 1, " FIELD_COLUMNS \
	" FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::bool[], $8::int[], $9::bool[]," \
	" $10::int[], $11::int[], $12::int[], $13::text[], $14::text[], $15::text[]) WITH ORDINALITY AS u(" FIELD_COLUMNS ", n)"

static int insert_fields(struct db *db, const char *id, const struct book *book, const struct form *form, struct err *e)
{
	struct buf column[COLUMNS] = {0};
	struct db_value v[COLUMNS + 1];
	bool failed = false;
	int rc;

	for (size_t c = 0; c < COLUMNS; c++)
		db_array(&column[c]);
	for (size_t i = 0; i < form->n; i++)
		add_field(column, book, form, i);
	for (size_t c = 0; c < COLUMNS; c++) {
		db_array_end(&column[c]);
		failed |= column[c].failed;
		v[c] = DB_TEXT(column[c].data);
	}
	v[COLUMNS] = DB_TEXT(id);
	rc = failed ? err_set(e, "out of memory") :
		db_do(db, e, INSERT_FIELDS, COLUMNS + 1, v);
	for (size_t c = 0; c < COLUMNS; c++)
		buf_free(&column[c]);
	return rc;
}

static int insert_form(struct db *db, const char *base, const struct book *book, const struct form *wider, struct err *e)
{
	char id[DB_KEY];
	int rc = db_key(db, id, e, "INSERT INTO form (base, kind, shape) SELECT id, 'fields', shape FROM base WHERE id = $1"
			" RETURNING id", 1, &DB_TEXT(base));

	if (rc == 0)
		err_set(e, "base %s is no more", base);
	return rc == 1 ? insert_fields(db, id, book, wider, e) : -1;
}

/* The base's row is held, so that forms of one base are made one after another. 0, 1 when it is no more, -1. */
static int widen(struct db *db, const char *base, const struct book *book, const struct form *wider, struct err *e)
{
	char held[DB_KEY], latest[DB_KEY];
	int rc = db_do(db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = db_key(db, held, e, "SELECT id FROM base WHERE id = $1 FOR UPDATE", 1, &DB_TEXT(base));
	if (rc == 1)
		rc = db_key(db, latest, e, "SELECT max(id) FROM form WHERE base = $1 AND kind <> 'patch'", 1, &DB_TEXT(base));
	if (rc == 1 && atoi(latest) == book->form && insert_form(db, base, book, wider, e))
		rc = -1;
	if (rc == 1 && db_do(db, e, "COMMIT", 0, NULL) == 0)
		return 0;
	db_do(db, NULL, "ROLLBACK", 0, NULL);
	return rc == 0 ? 1 : -1;
}

int bases_widen(struct bases *b, struct db *db, const struct book *book, const struct form *wider, struct err *e)
{
	const struct book *now;
	char base[16];
	int rc = 0;

	snprintf(base, sizeof(base), "%d", book->base);
	pthread_mutex_lock(&b->lock);
	now = shelf_take(b->shelf, book->base);
	if (!now || now->form == book->form)
		rc = widen(db, base, book, wider, e);
	if (rc == 0 && (!now || now->form == book->form))
		rc = load(b, db, base, e);
	if (now)
		shelf_put(b->shelf, now);
	if (rc == 1)
		shelf_drop(b->shelf, book->base);
	pthread_mutex_unlock(&b->lock);
	return rc < 0 ? -1 : 0;
}

int bases_show_again(struct bases *b, struct db *db, int base, struct err *e)
{
	const struct book *book = bases_refresh(b, db, e) ? NULL : bases_take(b, db, base, e);
	int rc = book ? bases_widen(b, db, book, &book->fields, e) : -1;

	if (book)
		shelf_put(b->shelf, book);
	return rc;
}

/* --- reading back --- */

int book_gives_back(const struct book *book, const struct buf *diff, const struct buf *xml, struct err *e)
{
	struct buf again = {0};
	int rc = form_decode(&book->fields, &book->lines, diff->data, diff->len, xml->len, &again, e);

	if (rc == 0 && (again.len != xml->len || memcmp(again.data, xml->data, xml->len)))
		rc = err_set(e, "base %d: what is to be kept does not give the document back", book->base);
	buf_free(&again);
	return rc;
}

int bases_open(struct bases *b, struct db *db, const char *form, struct opened *out, struct err *e)
{
	struct opened o = {0};
	PGresult *fields = NULL;
	PGresult *r = db_often(db, e, "SELECT base, kind FROM form WHERE id = $1", 1, &DB_TEXT(form));
	int rc = -1;

	if (!r)
		return -1;
	if (!PQntuples(r)) {
		err_set(e, "form %s is no more", form);
		goto done;
	}
	o.patch = !strcmp(PQgetvalue(r, 0, 1), "patch");
	if (!(o.book = bases_take(b, db, atoi(PQgetvalue(r, 0, 0)), e)))
		goto done;
	if (!o.patch && (!(fields = load_fields(db, form, e)) || fields_of(fields, &o.fields, e))) {
		opened_close(b, &o);
		goto done;
	}
	*out = o;
	rc = 0;
done:
	PQclear(fields);
	PQclear(r);
	return rc;
}

void opened_close(struct bases *b, struct opened *o)
{
	if (o->book)
		shelf_put(b->shelf, o->book);
	form_free(&o->fields);
	*o = (struct opened){0};
}

int opened_decode(const struct opened *o, const char *diff, size_t len, size_t max, struct buf *out, struct err *e)
{
	if (o->patch)
		return pack_open(PACK_PATCH, diff, len, o->book->text, o->book->len, max, out, e);
	return form_decode(&o->fields, &o->book->lines, diff, len, max, out, e);
}
