/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "delta/field_layout_internal.h"

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

	return d->old < 0 ? 0 : d->field.digits ? field_digits_count(more) : more.len;
}

static void draft_widen(struct draft *d)
{
	struct field *f = &d->field, before = *f;
	struct delta_span value = d->position.value, was, is;

	f->keep_start = common_start(value, d->is, f->keep_start);
	f->keep_end = common_end(value, d->is, f->keep_end, f->keep_start);
	was = field_middle(f, value);
	is = field_middle(f, d->is);
	f->fixed = f->fixed && was.len == is.len && field_span_is_ascii(was) && field_span_is_ascii(is);
	f->digits = f->digits && f->fixed && field_digits_match(was, is) ? field_digits_count(was) : 0;
	d->grown[0] = growth_of(d, value, f->keep_start, before.keep_start);
	d->grown[1] = growth_of(d, value, f->len - before.keep_end, f->len - f->keep_end);
}

static void draft_old(const struct field_layout *layout, size_t i, const struct field_position *positions,
		      struct draft *out)
{
	const struct field *f = &layout->fields[i];

	*out = (struct draft){ .field = *f, .position = positions[i], .is = positions[i].value, .old = i, .group = i };
	if (!field_is_stored(f) && !field_pages_may_follow(&positions[i], &positions[f->alias]))
		out->group = f->alias;
}

static void draft_new(const struct difference *c, struct draft *out)
{
	unsigned start = c->position.value.at - c->position.line.at, len = c->position.value.len;

	*out = (struct draft){
		.field = { .line = c->line, .start = start, .len = len, .keep_start = len, .keep_end = len,
			   .fixed = true, .digits = 1 },
		.position = c->position, .is = c->is, .old = -1, .group = -1,
	};
}

/* Middles that were equal and grew differently may differ now in nodes that were encoded before. */
static bool draft_gives_value(const struct draft *a, const struct draft *b)
{
	return a->group == b->group && field_is_stored(&a->field) && a->position.kind == b->position.kind &&
	       a->grown[0] == b->grown[0] && a->grown[1] == b->grown[1] &&
	       field_middles_equal(&a->field, a->is, &b->field, b->is) &&
	       field_middles_equal(&a->field, a->position.value, &b->field, b->position.value);
}

/* Only if both are new, or both old and related before. */
static bool draft_gives_pages(const struct field_layout *layout, const struct draft *memory, const struct draft *d)
{
	int before = d->old < 0 ? -1 : layout->fields[d->old].alias;

	return field_pages_may_follow(&d->position, &memory->position) && memory->old == before && (d->old < 0 ||
												    before >= 0) &&
	       field_pages_follow(&d->position, d->is, memory->position.value, memory->is);
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
			draft_new(&c->list[j++], d);
		}
		draft_widen(d);
		d->field.alias = draft_alias(layout, drafts, n, d);
	}
	return n;
}

static bool field_equal(const struct field *a, const struct field *b)
{
	return a->line == b->line && a->keep_start == b->keep_start && a->keep_end == b->keep_end &&
	       a->alias == b->alias && a->fixed == b->fixed && a->digits == b->digits;
}

static bool field_layout_equal(const struct field_layout *a, const struct field_layout *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!field_equal(&a->fields[i], &b->fields[i]))
			return false;
	return true;
}

static int drafts_fields(const struct draft *drafts, size_t n, struct field_layout *out)
{
	struct field *fields = malloc((n + 1) * sizeof(*fields));

	if (!fields)
		return -1;
	for (size_t i = 0; i < n; i++)
		fields[i] = drafts[i].field;
	*out = (struct field_layout){ fields, n };
	return 0;
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
	    !field_layout_locate(layout, base, positions))
		return 1;
	if (!(drafts = malloc((layout->n + differences.n + 1) * sizeof(*drafts))))
		return -1;
	n = drafts_make(layout, positions, &differences, drafts);
	if (n <= FIELDS_MAX && !(rc = drafts_fields(drafts, n, &wider))) {
		*widened = !field_layout_equal(layout, &wider);
		*out = wider;
	}
	free(drafts);
	return rc;
}
