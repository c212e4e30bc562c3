/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/fields.h"

#include <stdio.h>
#include <stdlib.h>

#include "topo/fields_own.h"

void form_free(struct form *f)
{
	free(f->fields);
	*f = (struct form){0};
}

/* --- what a form makes of a value --- */

bool span_is_ascii(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] & 0x80)
			return false;
	return true;
}

bool hex_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

size_t digits_count(struct span s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += hex_digit(s.at[i]);
	return n;
}

bool digits_fit(struct span was, struct span is)
{
	if (was.len != is.len)
		return false;
	for (size_t i = 0; i < was.len; i++)
		if (hex_digit(was.at[i]) ? !hex_digit(is.at[i]) : was.at[i] != is.at[i])
			return false;
	return true;
}

/* The digits alone: an address and the GUID it is made of have their colons elsewhere. */
static bool digits_equal(struct span a, struct span b)
{
	for (;;) {
		while (a.len && !hex_digit(*a.at))
			a = span_cut(a, 1, 0);
		while (b.len && !hex_digit(*b.at))
			b = span_cut(b, 1, 0);
		if (!a.len || !b.len)
			return a.len == b.len;
		if (*a.at != *b.at)
			return false;
		a = span_cut(a, 1, 0);
		b = span_cut(b, 1, 0);
	}
}

bool middles_equal(const struct field *f, struct span value, const struct field *g, struct span other)
{
	struct span a = field_middle(f, value), b = field_middle(g, other);

	return f->digits == g->digits && (f->digits ? digits_equal(a, b) : span_equal(a, b));
}

bool is_pages(const struct spot *count, const struct spot *memory)
{
	return count->kind == SPOT_COUNT && memory->kind == SPOT_MEMORY;
}

static bool field_fits(const struct form *form, size_t i, const struct lined *base, struct spot *spots)
{
	const struct field *f = &form->fields[i];
	struct spot *s = &spots[i];

	if (f->line >= base->count || (i && f->line <= form->fields[i - 1].line) || !spot_find(base, f->line, s))
		return false;
	if (f->start != (size_t)(s->value.at - s->line.at) || f->len != s->value.len || f->keep_start > f->len ||
	    f->keep_end > f->len - f->keep_start || f->alias >= (int)i || (f->digits && !f->fixed))
		return false;
	if (f->digits && f->digits != digits_count(field_middle(f, s->value)))
		return false;
	if (field_is_stored(f) || is_pages(s, &spots[f->alias]))
		return true;
	return field_is_stored(&form->fields[f->alias]) &&
	       middles_equal(f, s->value, &form->fields[f->alias], spots[f->alias].value);
}

bool form_spots(const struct form *form, const struct lined *base, struct spot spots[FORM_MAX])
{
	if (form->n > FORM_MAX)
		return false;
	for (size_t i = 0; i < form->n; i++)
		if (!field_fits(form, i, base, spots))
			return false;
	return true;
}

/*
 * The count of pages where the memory of their object is no more the base's: hwloc counts the pages from the memory, so that the
 * one tells the other. Written to digits; the length of it, 0 when there is none.
 */
static size_t pages_write(const struct spot *count, struct span memory_was, struct span memory_is, char digits[NUMBER_DIGITS + 2])
{
	unsigned long long was, is, pages, size;

	if (!spot_page_size(count, &size) || !size ||
	    !number_read(memory_was, &was) || !number_read(memory_is, &is) || !number_read(count->value, &pages))
		return 0;
	if (is >= was ? (is - was) % size : (was - is) % size || (was - is) / size > pages)
		return 0;
	pages = is >= was ? pages + (is - was) / size : pages - (was - is) / size;
	return snprintf(digits, NUMBER_DIGITS + 2, "%llu", pages);
}

bool pages_tell(const struct spot *count, struct span count_is, struct span memory_was, struct span memory_is)
{
	char digits[NUMBER_DIGITS + 2];
	struct span told = { digits, pages_write(count, memory_was, memory_is, digits) };

	return span_equal(told, count_is);
}

/* --- encoding --- */

struct values {
	struct spot spots[FORM_MAX];
	struct span is[FORM_MAX];
};

static bool value_fits(const struct form *form, size_t i, const struct values *v)
{
	const struct field *f = &form->fields[i];
	struct span was = v->spots[i].value, is = v->is[i];

	if (is.len < f->keep_start + f->keep_end || memcmp(is.at, was.at, f->keep_start) ||
	    memcmp(is.at + is.len - f->keep_end, was.at + was.len - f->keep_end, f->keep_end))
		return false;
	if (f->fixed && (is.len != was.len || !span_is_ascii(field_middle(f, is))))
		return false;
	if (f->digits && !digits_fit(field_middle(f, was), field_middle(f, is)))
		return false;
	if (field_is_stored(f))
		return true;
	if (is_pages(&v->spots[i], &v->spots[f->alias]))
		return pages_tell(&v->spots[i], is, v->spots[f->alias].value, v->is[f->alias]);
	return middles_equal(f, is, &form->fields[f->alias], v->is[f->alias]);
}

/* All values of doc where the form has fields; false when doc differs elsewhere, or a value does not fit its field. */
static bool values_find(const struct form *form, const struct lined *base, struct span doc, struct values *out)
{
	struct changes changes;
	size_t j = 0;

	if (!changes_find(base, doc, &changes) || !form_spots(form, base, out->spots))
		return false;
	for (size_t i = 0; i < form->n; i++) {
		out->is[i] = out->spots[i].value;
		if (j < changes.n && changes.list[j].line == form->fields[i].line)
			out->is[i] = changes.list[j++].is;
		if (!value_fits(form, i, out))
			return false;
	}
	return j == changes.n;
}

static unsigned digit_value(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Two a byte, the first in its upper half, as PostgreSQL's encode(bytea, 'hex') gives them back. */
static void put_digits(const struct form *form, const struct values *v, struct buf *out)
{
	unsigned char byte = 0;
	size_t n = 0;

	for (size_t i = 0; i < form->n; i++) {
		const struct field *f = &form->fields[i];
		struct span middle = field_middle(f, v->is[i]);

		for (size_t k = 0; field_is_stored(f) && f->digits && k < middle.len; k++) {
			if (!hex_digit(middle.at[k]))
				continue;
			byte = byte << 4 | digit_value(middle.at[k]);
			if (n++ % 2)
				buf_add(out, &byte, 1);
		}
	}
	byte <<= 4;
	buf_add(out, &byte, n % 2);
}

static void put_middles(const struct form *form, const struct values *v, bool fixed, struct buf *out)
{
	for (size_t i = 0; i < form->n; i++) {
		const struct field *f = &form->fields[i];
		struct span middle = field_middle(f, v->is[i]);

		if (!field_is_stored(f) || f->digits || f->fixed != fixed)
			continue;
		buf_add(out, middle.at, middle.len);
		if (!fixed)
			buf_add(out, "\n", 1);
	}
}

int form_encode(const struct form *form, const struct lined *base, const char *doc, size_t len, struct buf *out)
{
	struct values v;

	if (!values_find(form, base, (struct span){ doc, len }, &v))
		return 1;
	put_digits(form, &v, out);
	put_middles(form, &v, true, out);
	put_middles(form, &v, false, out);
	return out->failed ? -1 : 0;
}

/* --- decoding --- */

struct piece {
	struct span middle;	/* in the diff, or, of digits, how many there are before it */
	size_t digits;
	size_t start, len;	/* of the value in out */
};

struct decoder {
	const struct form *form;
	const struct lined *base;
	struct span digits, fixed, rest;	/* of the diff; of the latter two what is not read yet */
	size_t ndigits;				/* read */
	struct buf *out;
	size_t left;				/* bytes that may still come out */
	struct spot spots[FORM_MAX];
	struct piece pieces[FORM_MAX];
};

static bool put(struct decoder *d, struct span s)
{
	if (s.len > d->left)
		return false;
	d->left -= s.len;
	buf_add(d->out, s.at, s.len);
	return !d->out->failed;
}

static bool put_base(struct decoder *d, const char *from, const char *to)
{
	return put(d, (struct span){ from, to - from });
}

static bool take_fixed(struct decoder *d, size_t n, struct span *middle)
{
	*middle = (struct span){ d->fixed.at, n };
	d->fixed = span_cut(d->fixed, n, 0);
	return span_is_ascii(*middle);
}

static bool take_rest(struct decoder *d, struct span *middle)
{
	const char *nl = d->rest.len ? memchr(d->rest.at, '\n', d->rest.len) : NULL;

	if (!nl)
		return false;
	*middle = (struct span){ d->rest.at, nl - d->rest.at };
	d->rest = span_cut(d->rest, middle->len + 1, 0);
	return true;
}

/* What stands in field i, from the diff or from the field that tells it. */
static bool piece_take(struct decoder *d, size_t i)
{
	const struct field *f = &d->form->fields[i];
	struct span was = field_middle(f, d->spots[i].value);
	struct piece *p = &d->pieces[i];

	if (!field_is_stored(f)) {
		*p = d->pieces[f->alias];
		return f->digits || !f->fixed || p->middle.len == was.len;
	}
	if (f->digits) {
		p->digits = d->ndigits;
		d->ndigits += f->digits;
		return true;
	}
	return f->fixed ? take_fixed(d, was.len, &p->middle) : take_rest(d, &p->middle);
}

static bool put_hex(struct decoder *d, struct span was, size_t digit)
{
	size_t start = d->out->len;
	char *at;

	if (!put(d, was))
		return false;
	at = d->out->data + start;
	for (size_t k = 0; k < was.len; k++) {
		if (!hex_digit(at[k]))
			continue;
		at[k] = "0123456789abcdef"[(unsigned char)d->digits.at[digit / 2] >> (digit % 2 ? 0 : 4) & 0xf];
		digit++;
	}
	return true;
}

static bool put_kept(struct decoder *d, size_t i)
{
	const struct field *f = &d->form->fields[i];
	const char *was = d->spots[i].value.at;
	struct span middle = field_middle(f, d->spots[i].value);

	return piece_take(d, i) && put_base(d, was, was + f->keep_start) &&
	       (f->digits ? put_hex(d, middle, d->pieces[i].digits) : put(d, d->pieces[i].middle)) &&
	       put_base(d, was + f->len - f->keep_end, was + f->len);
}

static struct span value_out(const struct decoder *d, size_t i)
{
	return (struct span){ d->out->data + d->pieces[i].start, d->pieces[i].len };
}

static bool put_pages(struct decoder *d, size_t i)
{
	size_t memory = d->form->fields[i].alias;
	char digits[NUMBER_DIGITS + 2];
	size_t n = pages_write(&d->spots[i], d->spots[memory].value, value_out(d, memory), digits);

	return n && put(d, (struct span){ digits, n });
}

/* Of the document, all between the field before and this, and this. */
static bool put_field(struct decoder *d, size_t i, const char *from)
{
	const struct spot *s = &d->spots[i];
	int alias = d->form->fields[i].alias;
	size_t start;
	struct span is;

	if (!put_base(d, from, s->value.at))
		return false;
	start = d->out->len;
	if (alias >= 0 && is_pages(s, &d->spots[alias]) ? !put_pages(d, i) : !put_kept(d, i))
		return false;
	d->pieces[i].start = start;
	d->pieces[i].len = d->out->len - start;
	is = value_out(d, i);
	return spot_fits(s, is);
}

/* How much of the diff the digits and the fixed middles are. */
static void diff_cut(const struct form *form, size_t *digits, size_t *fixed)
{
	*digits = *fixed = 0;
	for (size_t i = 0; i < form->n; i++) {
		const struct field *f = &form->fields[i];

		if (!field_is_stored(f))
			continue;
		*digits += f->digits;
		*fixed += f->fixed && !f->digits ? f->len - f->keep_start - f->keep_end : 0;
	}
}

static bool decode(struct decoder *d, struct span diff)
{
	const char *from = d->base->text;
	size_t digits, fixed, packed;

	if (!form_spots(d->form, d->base, d->spots))
		return false;
	diff_cut(d->form, &digits, &fixed);
	packed = (digits + 1) / 2;
	if (packed > diff.len || fixed > diff.len - packed || (digits % 2 && diff.at[packed - 1] & 0xf))
		return false;
	d->digits = (struct span){ diff.at, packed };
	d->fixed = (struct span){ diff.at + packed, fixed };
	d->rest = span_cut(diff, packed + fixed, 0);
	for (size_t i = 0; i < d->form->n; i++) {
		if (!put_field(d, i, from))
			return false;
		from = d->spots[i].value.at + d->spots[i].value.len;
	}
	return put_base(d, from, d->base->text + d->base->len) && !d->rest.len;
}

int form_decode(const struct form *form, const struct lined *base, const char *diff, size_t diff_len, size_t max, struct buf *out,
		struct err *e)
{
	size_t before = out->len;
	struct decoder d;

	d.form = form;
	d.base = base;
	d.ndigits = 0;
	d.out = out;
	d.left = max;
	if (decode(&d, (struct span){ diff, diff_len }))
		return 0;
	out->len = before;
	if (out->data)
		out->data[before] = '\0';
	if (out->failed)
		return err_set(e, "out of memory");
	return err_set(e, "the fields are cut short, of another base or form, or more than %zu bytes", max);
}

/* --- for SQL --- */

void form_place(const struct form *form, size_t i, unsigned *at, unsigned *width, unsigned *ordinal)
{
	unsigned digits = 0, bytes = 0, lines = 0, digits_all = 0, bytes_all = 0;
	const struct field *f;

	while (!field_is_stored(&form->fields[i]))
		i = form->fields[i].alias;
	for (size_t k = 0; k < form->n; k++) {
		f = &form->fields[k];
		if (k == i) {
			digits = digits_all;
			bytes = bytes_all;
		}
		if (!field_is_stored(f))
			continue;
		digits_all += f->digits;
		bytes_all += f->fixed && !f->digits ? f->len - f->keep_start - f->keep_end : 0;
		lines += !f->fixed && k <= i;
	}
	f = &form->fields[i];
	*at = f->digits ? digits : (digits_all + 1) / 2 + (f->fixed ? bytes : bytes_all);
	*width = f->digits ? f->digits : f->fixed ? f->len - f->keep_start - f->keep_end : 0;
	*ordinal = f->fixed ? 0 : lines;
}
