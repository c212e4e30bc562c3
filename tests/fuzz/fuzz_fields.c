/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "delta/field_layout.h"

#define MAX (1u << 20)
#define DOCS 3

static const char NODE[] =
	"<object type=\"Machine\">\n"
	"  <info name=\"HostName\" value=\"node17\"/>\n"
	"  <info name=\"Serial\" value=\"SN\xc3\xa9""12345\"/>\n"
	"  <object type=\"NUMANode\" local_memory=\"134756204544\">\n"
	"    <page_type size=\"4096\" count=\"32899464\"/>\n"
	"    <page_type size=\"2097152\" count=\"0\"/>\n"
	"  </object>\n"
	"  <info name=\"NodeGUID\" value=\"506b:4b03:003c:eee8\"/>\n"
	"  <info name=\"SysImageGUID\" value=\"506b:4b03:003c:eee8\"/>\n"
	"  <info name=\"Address\" value=\"50:6b:4b:03:00:3c:ee:e8\"/>\n"
	"</object>\n";

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next of the pieces, ended by 0xff. */
static struct input piece(struct input *in)
{
	const uint8_t *end = in->left ? memchr(in->at, 0xff, in->left) : NULL;
	struct input p = { in->at, end ? (size_t)(end - in->at) : in->left };
	size_t step = p.left + (end != NULL);

	in->at += step;
	in->left -= step;
	return p;
}

/* The text changed in places: of four bytes, two say where and one how: set, put in or take out the fourth. */
static struct buf edited(const char *text, size_t len, struct input edits)
{
	struct buf b = {0};

	buf_add(&b, text, len);
	for (; edits.left >= 4 && b.len; edits.at += 4, edits.left -= 4) {
		size_t at = (edits.at[0] << 8 | edits.at[1]) % b.len;
		char c = edits.at[3];

		if (edits.at[2] % 3 == 1 && buf_reserve(&b, 1)) {
			memmove(b.data + at + 1, b.data + at, b.len - at);
			b.len++;
		} else if (edits.at[2] % 3 == 2) {
			memmove(b.data + at, b.data + at + 1, b.len - at - 1);
			b.len--;
			continue;
		}
		b.data[at] = c;
	}
	return b;
}

static void comes_back(const struct field_layout *layout, const struct line_index *base, const struct buf *doc)
{
	struct buf diff = {0}, again = {0};

	if (field_layout_encode(layout, base, doc->data, doc->len, &diff) ||
	    field_layout_decode(layout, base, diff.data ? diff.data : "", diff.len, doc->len, &again, NULL) ||
	    again.len != doc->len || memcmp(again.data ? again.data : "", doc->data ? doc->data : "", doc->len))
		abort();
	buf_free(&diff);
	buf_free(&again);
}

/* Whatever decodes is a text that fits the layout, and encodes to the same bytes. */
static void open_anything(const struct field_layout *layout, const struct line_index *base, struct input diff)
{
	struct buf doc = {0}, again = {0};

	if (!field_layout_decode(layout, base, (const char *)diff.at, diff.left, MAX, &doc, NULL))
		if (doc.len > MAX || field_layout_encode(layout, base, doc.data ? doc.data : "", doc.len, &again) ||
		    again.len != diff.left || memcmp(again.data ? again.data : "", diff.at, diff.left))
			abort();
	buf_free(&doc);
	buf_free(&again);
}

/* Fields as a spoiled store may have them. */
static void open_anyhow(const struct line_index *base, struct input fields, struct input diff)
{
	struct field_layout layout = {0};

	if (!(layout.fields = calloc(fields.left / 7 + 1, sizeof(*layout.fields))))
		return;
	for (; fields.left >= 7; fields.at += 7, fields.left -= 7)
		layout.fields[layout.n++] = (struct field){
			.line = fields.at[0], .start = fields.at[1], .len = fields.at[2], .keep_start = fields.at[3],
			.keep_end = fields.at[4], .alias = (int8_t)fields.at[5], .fixed = fields.at[6] & 1,
			.digits = fields.at[6] >> 1,
		};
	open_anything(&layout, base, diff);
	field_layout_free(&layout);
}

/* A base, documents from which its layout is learned, then what is decoded with that layout and with another. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size }, first = piece(&in), diff;
	struct buf text = edited(NODE, strlen(NODE), first), docs[DOCS];
	struct field_layout layout = {0}, wider;
	struct line_index base;
	size_t learned = 0;
	bool widened;

	if (first.left % 4 == 3) {
		buf_free(&text);
		buf_add(&text, first.at, first.left);
	}
	if (text.failed || line_index_build(text.data, text.len, &base))
		abort();
	for (size_t i = 0; i < DOCS; i++) {
		struct buf doc = edited(text.data, text.len, piece(&in));

		if (field_layout_widen(&layout, &base, doc.data, doc.len, &wider, &widened)) {
			buf_free(&doc);
			continue;
		}
		field_layout_free(&layout);
		layout = wider;
		docs[learned++] = doc;
		for (size_t k = 0; k < learned; k++)
			comes_back(&layout, &base, &docs[k]);
	}
	diff = piece(&in);
	open_anything(&layout, &base, diff);
	open_anyhow(&base, in, diff);
	while (learned)
		buf_free(&docs[--learned]);
	field_layout_free(&layout);
	line_index_free(&base);
	buf_free(&text);
	return 0;
}
