/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "delta/field_layout.h"

#include <assert.h>

void field_layout_free(struct field_layout *l)
{
	free(l->fields);
	*l = (struct field_layout){0};
}

/* --- values and their middles --- */

static bool field_is_stored(const struct field *f)
{
	return f->alias < 0;
}

static struct delta_span field_middle(const struct field *f, struct delta_span value)
{
	return span_cut(value, f->keep_start, f->keep_end);
}

static bool span_is_ascii(struct delta_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] & 0x80)
			return false;
	return true;
}

/* 0-9a-f */
static bool is_hex_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t digits_count(struct delta_span s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += is_hex_digit(s.at[i]);
	return n;
}

static bool digits_match(struct delta_span was, struct delta_span is)
{
	if (was.len != is.len)
		return false;
	for (size_t i = 0; i < was.len; i++)
		if (is_hex_digit(was.at[i]) ? !is_hex_digit(is.at[i]) : was.at[i] != is.at[i])
			return false;
	return true;
}

/* Compares digits only: an address and the GUID that it is derived from place their colons differently. */
static bool digits_equal(struct delta_span a, struct delta_span b)
{
	for (;;) {
		while (a.len && !is_hex_digit(*a.at))
			a = span_cut(a, 1, 0);
		while (b.len && !is_hex_digit(*b.at))
			b = span_cut(b, 1, 0);
		if (!a.len || !b.len)
			return a.len == b.len;
		if (*a.at != *b.at)
			return false;
		a = span_cut(a, 1, 0);
		b = span_cut(b, 1, 0);
	}
}

/* Is the middle of f equal to that of g (of hex fields: their digits)? */
static bool middles_equal(const struct field *f, struct delta_span value, const struct field *g,
			  struct delta_span other)
{
	struct delta_span a = field_middle(f, value), b = field_middle(g, other);

	return f->digits == g->digits && (f->digits ? digits_equal(a, b) : span_equal(a, b));
}

static bool pages_may_follow(const struct field_position *count, const struct field_position *memory)
{
	return count->kind == FIELD_COUNT && memory->kind == FIELD_MEMORY;
}

/*
 * The positions of the fields in base; false when the layout does not match base: rows of a database are not trusted.
 */
static bool positions_locate(const struct field_layout *layout, const struct line_index *base,
			     struct field_position positions[FIELDS_MAX])
{
	if (layout->n > FIELDS_MAX)
		return false;
	for (size_t i = 0; i < layout->n; i++) {
		const struct field *f = &layout->fields[i], *of = f->alias < 0 ? NULL : &layout->fields[f->alias];
		struct field_position *s = &positions[i];

		if (f->line >= base->count || (i && f->line <= layout->fields[i - 1].line) ||
		    !field_position_find(base, f->line, s))
			return false;
		if (f->start != (size_t)(s->value.at - s->line.at) || f->len != s->value.len ||
		    f->keep_start > f->len || f->keep_end > f->len - f->keep_start || f->alias >= (int)i ||
		    (f->digits && (!f->fixed || f->digits != digits_count(field_middle(f, s->value)))))
			return false;
		if (of && !pages_may_follow(s, &positions[f->alias]) &&
		    (!field_is_stored(of) || !middles_equal(f, s->value, of, positions[f->alias].value)))
			return false;
	}
	return true;
}

/*
 * The count of pages in an object whose memory differs from the base's: hwloc derives the count from the memory.
 * Written to digits; returns its length, 0 when it does not follow.
 */
static size_t pages_format(const struct field_position *count, struct delta_span memory_was,
			   struct delta_span memory_is, char digits[NUMBER_DIGITS + 2])
{
	unsigned long long was, is, pages, size;

	if (!field_position_page_size(count, &size) || !size ||
	    !field_number_read(memory_was, &was) || !field_number_read(memory_is, &is) ||
	    !field_number_read(count->value, &pages))
		return 0;
	if (is >= was ? (is - was) % size : (was - is) % size || (was - is) / size > pages)
		return 0;
	pages = is >= was ? pages + (is - was) / size : pages - (was - is) / size;
	return snprintf(digits, NUMBER_DIGITS + 2, "%llu", pages);
}

static bool pages_follow(const struct field_position *count, struct delta_span count_is, struct delta_span memory_was,
			struct delta_span memory_is)
{
	char digits[NUMBER_DIGITS + 2];
	struct delta_span expected = { digits, pages_format(count, memory_was, memory_is, digits) };

	return span_equal(expected, count_is);
}

/* --- encoding --- */

struct values {
	struct field_position positions[FIELDS_MAX];
	struct delta_span is[FIELDS_MAX];
};

static bool value_fits(const struct field_layout *layout, size_t i, const struct values *v)
{
	const struct field *f = &layout->fields[i];
	struct delta_span was = v->positions[i].value, is = v->is[i];

	if (is.len < f->keep_start + f->keep_end || memcmp(is.at, was.at, f->keep_start) ||
	    memcmp(is.at + is.len - f->keep_end, was.at + was.len - f->keep_end, f->keep_end))
		return false;
	if (f->fixed && (is.len != was.len || !span_is_ascii(field_middle(f, is))))
		return false;
	if (f->digits && !digits_match(field_middle(f, was), field_middle(f, is)))
		return false;
	if (field_is_stored(f))
		return true;
	if (pages_may_follow(&v->positions[i], &v->positions[f->alias]))
		return pages_follow(&v->positions[i], is, v->positions[f->alias].value, v->is[f->alias]);
	return middles_equal(f, is, &layout->fields[f->alias], v->is[f->alias]);
}

/* The values of doc in all fields; false when doc differs elsewhere, or a value does not fit its field. */
static bool values_find(const struct field_layout *layout, const struct line_index *base, struct delta_span doc,
			struct values *out)
{
	struct differences differences;
	size_t j = 0;

	if (!differences_find(base, doc, &differences) || !positions_locate(layout, base, out->positions))
		return false;
	for (size_t i = 0; i < layout->n; i++) {
		out->is[i] = out->positions[i].value;
		if (j < differences.n && differences.list[j].line == layout->fields[i].line)
			out->is[i] = differences.list[j++].is;
		if (!value_fits(layout, i, out))
			return false;
	}
	return j == differences.n;
}

static void middles_write(const struct field_layout *layout, const struct values *v, bool fixed, struct buf *out)
{
	for (size_t i = 0; i < layout->n; i++) {
		const struct field *f = &layout->fields[i];
		struct delta_span middle = field_middle(f, v->is[i]);

		if (!field_is_stored(f) || f->digits || f->fixed != fixed)
			continue;
		buf_add(out, middle.at, middle.len);
		if (!fixed)
			buf_add(out, "\n", 1);
	}
}

int field_layout_encode(const struct field_layout *layout, const struct line_index *base, const char *doc, size_t len,
			struct buf *out)
{
	struct values v;

	if (!values_find(layout, base, (struct delta_span){ doc, len }, &v))
		return 1;
	/* Two per byte, the first in the upper half, as PostgreSQL's encode(bytea, 'hex') returns them. */
	unsigned char byte = 0;
	size_t n = 0;

	for (size_t i = 0; i < layout->n; i++) {
		const struct field *f = &layout->fields[i];
		struct delta_span middle = field_middle(f, v.is[i]);

		for (size_t k = 0; field_is_stored(f) && f->digits && k < middle.len; k++) {
			if (!is_hex_digit(middle.at[k]))
				continue;
			byte = byte << 4 | (middle.at[k] <= '9' ? middle.at[k] - '0' : middle.at[k] - 'a' + 10);
			if (n++ % 2)
				buf_add(out, &byte, 1);
		}
	}
	byte <<= 4;
	buf_add(out, &byte, n % 2);
	middles_write(layout, &v, true, out);
	middles_write(layout, &v, false, out);
	return out->failed ? -1 : 0;
}

/* --- decoding --- */

struct piece {
	struct delta_span middle;	/* in the diff; not of a hex field */
	size_t digits;		/* hex field: digits of the diff before its own */
	size_t start, len;	/* of the value in out */
};

struct decoder {
	const struct field_layout *layout;
	const struct line_index *base;
	struct delta_span digits, fixed, rest;	/* the parts of the diff; of the latter two what is not read yet */
	size_t ndigits;				/* digits read */
	struct buf *out;
	size_t left;				/* bytes that may still be written */
	struct field_position positions[FIELDS_MAX];
	struct piece pieces[FIELDS_MAX];
};

static bool decoder_write(struct decoder *d, struct delta_span s)
{
	if (s.len > d->left)
		return false;
	d->left -= s.len;
	buf_add(d->out, s.at, s.len);
	return !d->out->failed;
}

static bool decoder_write_base(struct decoder *d, const char *from, const char *to)
{
	return decoder_write(d, (struct delta_span){ from, to - from });
}

/* The middle of field i, from the diff or from its alias. */
static bool piece_read(struct decoder *d, size_t i)
{
	const struct field *f = &d->layout->fields[i];
	struct delta_span was = field_middle(f, d->positions[i].value);
	struct piece *p = &d->pieces[i];
	const char *nl;

	if (!field_is_stored(f)) {
		*p = d->pieces[f->alias];
		return f->digits || !f->fixed || p->middle.len == was.len;
	}
	if (f->digits) {
		p->digits = d->ndigits;
		d->ndigits += f->digits;
		return true;
	}
	if (f->fixed) {
		assert(was.len <= d->fixed.len);
		p->middle = (struct delta_span){ d->fixed.at, was.len };
		d->fixed = span_cut(d->fixed, was.len, 0);
		return span_is_ascii(p->middle);
	}
	if (!d->rest.len || !(nl = memchr(d->rest.at, '\n', d->rest.len)))
		return false;
	p->middle = (struct delta_span){ d->rest.at, nl - d->rest.at };
	d->rest = span_cut(d->rest, p->middle.len + 1, 0);
	return true;
}

static bool field_write_stored(struct decoder *d, size_t i)
{
	const struct field *f = &d->layout->fields[i];
	const char *was = d->positions[i].value.at;
	struct delta_span middle = field_middle(f, d->positions[i].value);
	size_t start, digit;

	if (!piece_read(d, i) || !decoder_write_base(d, was, was + f->keep_start))
		return false;
	start = d->out->len;
	if (!decoder_write(d, f->digits ? middle : d->pieces[i].middle))
		return false;
	/* The digits of a hex field replace those of the base. */
	digit = d->pieces[i].digits;
	for (char *at = d->out->data + start; f->digits && at < d->out->data + d->out->len; at++) {
		if (!is_hex_digit(*at))
			continue;
		*at = "0123456789abcdef"[(unsigned char)d->digits.at[digit / 2] >> (digit % 2 ? 0 : 4) & 0xf];
		digit++;
	}
	return decoder_write_base(d, was + f->len - f->keep_end, was + f->len);
}

static struct delta_span value_written(const struct decoder *d, size_t i)
{
	return (struct delta_span){ d->out->data + d->pieces[i].start, d->pieces[i].len };
}

/* Write the text between the previous field and this one, then this one. */
static bool field_write(struct decoder *d, size_t i, const char *from)
{
	const struct field_position *s = &d->positions[i];
	int alias = d->layout->fields[i].alias;
	char digits[NUMBER_DIGITS + 2];
	size_t start, n;

	if (!decoder_write_base(d, from, s->value.at))
		return false;
	start = d->out->len;
	if (alias >= 0 && pages_may_follow(s, &d->positions[alias])) {
		n = pages_format(s, d->positions[alias].value, value_written(d, alias), digits);
		if (!n || !decoder_write(d, (struct delta_span){ digits, n }))
			return false;
	} else if (!field_write_stored(d, i)) {
		return false;
	}
	d->pieces[i].start = start;
	d->pieces[i].len = d->out->len - start;
	return field_position_accepts(s, value_written(d, i));
}

static bool field_decode(struct decoder *d, struct delta_span diff)
{
	const char *from = d->base->text;
	size_t digits = 0, fixed = 0, packed;

	if (!positions_locate(d->layout, d->base, d->positions))
		return false;
	/* How many digits and how many bytes of fixed middles the diff begins with. */
	for (size_t i = 0; i < d->layout->n; i++) {
		const struct field *f = &d->layout->fields[i];

		if (!field_is_stored(f))
			continue;
		digits += f->digits;
		fixed += f->fixed && !f->digits ? f->len - f->keep_start - f->keep_end : 0;
	}
	packed = (digits + 1) / 2;
	if (packed > diff.len || fixed > diff.len - packed || (digits % 2 && diff.at[packed - 1] & 0xf))
		return false;
	d->digits = (struct delta_span){ diff.at, packed };
	d->fixed = (struct delta_span){ diff.at + packed, fixed };
	d->rest = span_cut(diff, packed + fixed, 0);
	for (size_t i = 0; i < d->layout->n; i++) {
		if (!field_write(d, i, from))
			return false;
		from = d->positions[i].value.at + d->positions[i].value.len;
	}
	return decoder_write_base(d, from, d->base->text + d->base->len) && !d->rest.len;
}

int field_layout_decode(const struct field_layout *layout, const struct line_index *base, const char *diff,
			size_t diff_len, size_t max, struct buf *out, struct err *e)
{
	size_t before = out->len;
	struct decoder d;

	d.layout = layout;
	d.base = base;
	d.ndigits = 0;
	d.out = out;
	d.left = max;
	if (field_decode(&d, (struct delta_span){ diff, diff_len }))
		return 0;
	out->len = before;
	if (out->data)
		out->data[before] = '\0';
	if (out->failed)
		return err_set(e, "out of memory");
	return err_set(e, "stored fields: truncated, made for another base or layout, or more than %zu bytes", max);
}

/* --- widening --- */

static bool is_inside_char(struct delta_span s, size_t at)
{
	return at < s.len && ((unsigned char)s.at[at] & 0xc0) == 0x80;
}

/* Whole UTF-8 characters only, so that a middle is valid UTF-8 too. */
static size_t common_start(struct delta_span a, struct delta_span b, size_t most)
{
	size_t n = 0;

	while (n < most && n < a.len && n < b.len && a.at[n] == b.at[n])
		n++;
	while (n && (is_inside_char(a, n) || is_inside_char(b, n)))
		n--;
	return n;
}

static size_t common_end(struct delta_span a, struct delta_span b, size_t most, size_t start)
{
	size_t n = 0;

	while (n < most && n < a.len - start && n < b.len - start && a.at[a.len - 1 - n] == b.at[b.len - 1 - n])
		n++;
	while (n && is_inside_char(a, a.len - n))
		n--;
	return n;
}

struct draft {
	struct field field;
	struct field_position position;
	struct delta_span is;
	int old;		/* its index in the given layout, -1: new */
	int group;		/* shared by fields whose middles were equal in every node so far; new ones: -1 */
	unsigned grown[2];	/* growth of an old field's middle at its start and end: bytes, in a hex field digits */
};

static unsigned growth_of(const struct draft *d, struct delta_span was, size_t start, size_t end)
{
	struct delta_span more = span_cut(was, start, was.len - end);

	return d->old < 0 ? 0 : d->field.digits ? digits_count(more) : more.len;
}

static void draft_widen(struct draft *d)
{
	struct field *f = &d->field, before = *f;
	struct delta_span value = d->position.value, was, is;

	f->keep_start = common_start(value, d->is, f->keep_start);
	f->keep_end = common_end(value, d->is, f->keep_end, f->keep_start);
	was = field_middle(f, value);
	is = field_middle(f, d->is);
	f->fixed = f->fixed && was.len == is.len && span_is_ascii(was) && span_is_ascii(is);
	f->digits = f->digits && f->fixed && digits_match(was, is) ? digits_count(was) : 0;
	d->grown[0] = growth_of(d, value, f->keep_start, before.keep_start);
	d->grown[1] = growth_of(d, value, f->len - before.keep_end, f->len - f->keep_end);
}

static void draft_old(const struct field_layout *layout, size_t i, const struct field_position *positions,
		      struct draft *out)
{
	const struct field *f = &layout->fields[i];

	*out = (struct draft){ .field = *f, .position = positions[i], .is = positions[i].value, .old = i, .group = i };
	if (!field_is_stored(f) && !pages_may_follow(&positions[i], &positions[f->alias]))
		out->group = f->alias;
}

/* Middles that were equal and grew differently may differ now in nodes that were encoded before. */
static bool draft_gives_value(const struct draft *a, const struct draft *b)
{
	return a->group == b->group && field_is_stored(&a->field) && a->position.kind == b->position.kind &&
	       a->grown[0] == b->grown[0] && a->grown[1] == b->grown[1] &&
	       middles_equal(&a->field, a->is, &b->field, b->is) &&
	       middles_equal(&a->field, a->position.value, &b->field, b->position.value);
}

/* Only if both are new, or both old and related before. */
static bool draft_gives_pages(const struct field_layout *layout, const struct draft *memory, const struct draft *d)
{
	int before = d->old < 0 ? -1 : layout->fields[d->old].alias;

	return pages_may_follow(&d->position, &memory->position) && memory->old == before && (d->old < 0 ||
												    before >= 0) &&
	       pages_follow(&d->position, d->is, memory->position.value, memory->is);
}

static int draft_alias(const struct field_layout *layout, const struct draft *drafts, size_t n, const struct draft *d)
{
	for (size_t i = n; i-- > 0;)
		if (draft_gives_pages(layout, &drafts[i], d))
			return i;
	for (size_t i = 0; i < n; i++)
		if (draft_gives_value(&drafts[i], d))
			return i;
	return -1;
}

/* Merge the layout's fields and the document's differences by line; a difference may be in a field. */
static size_t drafts_make(const struct field_layout *layout, const struct field_position *positions,
			  const struct differences *c, struct draft *drafts)
{
	size_t n = 0;

	for (size_t i = 0, j = 0; i < layout->n || j < c->n; n++) {
		struct draft *d = &drafts[n];
		bool old = i < layout->n && (j == c->n || layout->fields[i].line <= c->list[j].line);

		if (old && j < c->n && layout->fields[i].line == c->list[j].line) {
			draft_old(layout, i++, positions, d);
			d->is = c->list[j++].is;
		} else if (old) {
			draft_old(layout, i++, positions, d);
		} else {
			const struct difference *x = &c->list[j++];
			unsigned len = x->position.value.len;

			*d = (struct draft){
				.field = { .line = x->line, .start = x->position.value.at - x->position.line.at,
					   .len = len, .keep_start = len, .keep_end = len, .fixed = true, .digits = 1 },
				.position = x->position, .is = x->is, .old = -1, .group = -1,
			};
		}
		draft_widen(d);
		d->field.alias = draft_alias(layout, drafts, n, d);
	}
	return n;
}

static bool field_layout_equal(const struct field_layout *a, const struct field_layout *b)
{
	for (size_t i = 0; a->n == b->n && i < a->n; i++) {
		const struct field *f = &a->fields[i], *g = &b->fields[i];

		if (f->line != g->line || f->keep_start != g->keep_start || f->keep_end != g->keep_end ||
		    f->alias != g->alias || f->fixed != g->fixed || f->digits != g->digits)
			return false;
	}
	return a->n == b->n;
}

int field_layout_widen(const struct field_layout *layout, const struct line_index *base, const char *doc, size_t len,
		       struct field_layout *out, bool *widened)
{
	struct field_position positions[FIELDS_MAX];
	struct differences differences;
	struct draft *drafts;
	struct field_layout wider;
	size_t n;
	int rc = 1;

	if (!differences_find(base, (struct delta_span){ doc, len }, &differences) ||
	    !positions_locate(layout, base, positions))
		return 1;
	if (!(drafts = malloc((layout->n + differences.n + 1) * sizeof(*drafts))))
		return -1;
	n = drafts_make(layout, positions, &differences, drafts);
	if (n <= FIELDS_MAX) {
		wider = (struct field_layout){ malloc((n + 1) * sizeof(*wider.fields)), n };
		for (size_t i = 0; wider.fields && i < n; i++)
			wider.fields[i] = drafts[i].field;
		rc = wider.fields ? 0 : -1;
	}
	if (!rc) {
		*widened = !field_layout_equal(layout, &wider);
		*out = wider;
	}
	free(drafts);
	return rc;
}

/* --- for SQL --- */

void field_layout_position(const struct field_layout *layout, size_t i, unsigned *at, unsigned *width,
			   unsigned *ordinal)
{
	unsigned digits = 0, bytes = 0, lines = 0, digits_all = 0, bytes_all = 0;
	const struct field *f;

	while (!field_is_stored(&layout->fields[i]))
		i = layout->fields[i].alias;
	for (size_t k = 0; k < layout->n; k++) {
		f = &layout->fields[k];
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
	f = &layout->fields[i];
	*at = f->digits ? digits : (digits_all + 1) / 2 + (f->fixed ? bytes : bytes_all);
	*width = f->digits ? f->digits : f->fixed ? f->len - f->keep_start - f->keep_end : 0;
	*ordinal = f->fixed ? 0 : lines;
}
