/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "topo/fields_own.h"

static bool is_inside_char(struct span s, size_t at)
{
	return at < s.len && ((unsigned char)s.at[at] & 0xc0) == 0x80;
}

/* No less of two values than a whole character, so that a middle is text too. */
static size_t common_start(struct span a, struct span b, size_t most)
{
	size_t n = 0;

	while (n < most && n < a.len && n < b.len && a.at[n] == b.at[n])
		n++;
	while (n && (is_inside_char(a, n) || is_inside_char(b, n)))
		n--;
	return n;
}

static size_t common_end(struct span a, struct span b, size_t most, size_t taken)
{
	size_t n = 0;

	while (n < most && n < a.len - taken && n < b.len - taken && a.at[a.len - 1 - n] == b.at[b.len - 1 - n])
		n++;
	while (n && is_inside_char(a, a.len - n))
		n--;
	return n;
}

struct draft {
	struct field field;
	struct spot spot;
	struct span is;
	int old;		/* its index in the form before, -1: new */
	int group;		/* old fields whose middles were always equal have one; so have the new ones, -1 */
	unsigned grown[2];	/* what an old one's middle grew by, before and behind: bytes, or, of digits, digits */
};

static unsigned grown_by(const struct draft *d, struct span was, size_t start, size_t end)
{
	struct span more = span_cut(was, start, was.len - end);

	return d->old < 0 ? 0 : d->field.digits ? digits_count(more) : more.len;
}

static void draft_widen(struct draft *d)
{
	struct field *f = &d->field, before = *f;
	struct span value = d->spot.value, was, is;

	f->keep_start = common_start(value, d->is, f->keep_start);
	f->keep_end = common_end(value, d->is, f->keep_end, f->keep_start);
	was = field_middle(f, value);
	is = field_middle(f, d->is);
	f->fixed = f->fixed && was.len == is.len && span_is_ascii(was) && span_is_ascii(is);
	f->digits = f->digits && f->fixed && digits_fit(was, is) ? digits_count(was) : 0;
	d->grown[0] = grown_by(d, value, f->keep_start, before.keep_start);
	d->grown[1] = grown_by(d, value, f->len - before.keep_end, f->len - f->keep_end);
}

static void draft_old(const struct form *form, size_t i, const struct spot *spots, struct draft *out)
{
	const struct field *f = &form->fields[i];

	*out = (struct draft){ .field = *f, .spot = spots[i], .is = spots[i].value, .old = i, .group = i };
	if (!field_is_stored(f) && !is_pages(&spots[i], &spots[f->alias]))
		out->group = f->alias;
}

static void draft_new(const struct change *c, struct draft *out)
{
	unsigned start = c->spot.value.at - c->spot.line.at, len = c->spot.value.len;

	*out = (struct draft){
		.field = { .line = c->line, .start = start, .len = len, .keep_start = len, .keep_end = len, .fixed = true,
			   .digits = 1 },
		.spot = c->spot, .is = c->is, .old = -1, .group = -1,
	};
}

/* Those that grew apart were equal in what they were, but need not be with what they became. */
static bool drafts_share(const struct draft *a, const struct draft *b)
{
	return a->group == b->group && field_is_stored(&a->field) && a->spot.kind == b->spot.kind && a->grown[0] == b->grown[0] &&
	       a->grown[1] == b->grown[1] && middles_equal(&a->field, a->is, &b->field, b->is) &&
	       middles_equal(&a->field, a->spot.value, &b->field, b->spot.value);
}

/* Both new, or both old and so before. */
static bool draft_has_pages(const struct form *form, const struct draft *memory, const struct draft *d)
{
	int before = d->old < 0 ? -1 : form->fields[d->old].alias;

	return is_pages(&d->spot, &memory->spot) && memory->old == before && (d->old < 0 || before >= 0) &&
	       pages_tell(&d->spot, d->is, memory->spot.value, memory->is);
}

static int draft_teller(const struct form *form, const struct draft *drafts, size_t n, const struct draft *d)
{
	for (size_t i = n; i-- > 0;)
		if (draft_has_pages(form, &drafts[i], d))
			return i;
	for (size_t i = 0; i < n; i++)
		if (drafts_share(&drafts[i], d))
			return i;
	return -1;
}

/* The form's fields and the document's changes, in the order of their lines: a change may be in a field. */
static size_t drafts_make(const struct form *form, const struct spot *spots, const struct changes *c, struct draft *drafts)
{
	size_t n = 0;

	for (size_t i = 0, j = 0; i < form->n || j < c->n; n++) {
		struct draft *d = &drafts[n];
		bool old = i < form->n && (j == c->n || form->fields[i].line <= c->list[j].line);

		if (old && j < c->n && form->fields[i].line == c->list[j].line) {
			draft_old(form, i++, spots, d);
			d->is = c->list[j++].is;
		} else if (old) {
			draft_old(form, i++, spots, d);
		} else {
			draft_new(&c->list[j++], d);
		}
		draft_widen(d);
		d->field.alias = draft_teller(form, drafts, n, d);
	}
	return n;
}

static bool field_equal(const struct field *a, const struct field *b)
{
	return a->line == b->line && a->keep_start == b->keep_start && a->keep_end == b->keep_end && a->alias == b->alias &&
	       a->fixed == b->fixed && a->digits == b->digits;
}

static bool form_equal(const struct form *a, const struct form *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!field_equal(&a->fields[i], &b->fields[i]))
			return false;
	return true;
}

static int drafts_take(const struct draft *drafts, size_t n, struct form *out)
{
	struct field *fields = malloc((n + 1) * sizeof(*fields));

	if (!fields)
		return -1;
	for (size_t i = 0; i < n; i++)
		fields[i] = drafts[i].field;
	*out = (struct form){ fields, n };
	return 0;
}

int form_learn(const struct form *form, const struct lined *base, const char *doc, size_t len, struct form *out, bool *widened)
{
	struct spot spots[FORM_MAX];
	struct changes changes;
	struct draft *drafts;
	struct form wider;
	size_t n;
	int rc = 1;

	if (!changes_find(base, (struct span){ doc, len }, &changes) || !form_spots(form, base, spots))
		return 1;
	if (!(drafts = malloc((form->n + changes.n + 1) * sizeof(*drafts))))
		return -1;
	n = drafts_make(form, spots, &changes, drafts);
	if (n <= FORM_MAX && !(rc = drafts_take(drafts, n, &wider))) {
		*widened = !form_equal(form, &wider);
		*out = wider;
	}
	free(drafts);
	return rc;
}
