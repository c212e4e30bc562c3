/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <pthread.h>

#include "table.h"
#include "delta/field_layout.h"
#include "delta/base_cache.h"

OWNS(struct base_cache *, base_cache_free)

#define MAX (1u << 20)

#define HOST "value=\"node17\""
#define SERIAL "value=\"SN-A1234\""
#define CITY "value=\"Z\xc3\xbcrich\""
#define MEMORY "local_memory=\"134756204544\""
#define PAGES "count=\"32899464\""
#define NODE_GUID "value=\"506b:4b03:003c:eee8\""
#define IMAGE_GUID "value=\"506b:4b03:003c:eee8\" "
#define ADDRESS "value=\"20:00:50:6b:4b:03:00:3c:ee:e8\""

static const char NODE[] =
	"<topology version=\"2.0\">\n"
	"  <object type=\"Machine\" os_index=\"0\" cpuset=\"0x00000003\" gp_index=\"1\">\n"
	"    <info name=\"HostName\" " HOST "/>\n"
	"    <info name=\"ProductSerial\" " SERIAL "/>\n"
	"    <info name=\"City\" " CITY "/>\n"
	"    <info name=\"Vendor\" value=\"A&amp;B\"/>\n"
	"    <object type=\"NUMANode\" os_index=\"0\" gp_index=\"2\" " MEMORY ">\n"
	"      <page_type size=\"4096\" " PAGES "/>\n"
	"      <page_type size=\"2097152\" count=\"0\"/>\n"
	"    </object>\n"
	"    <info name=\"NodeGUID\" " NODE_GUID "/>\n"
	"    <info name=\"SysImageGUID\" " IMAGE_GUID "/>\n"
	"    <info name=\"Address\" " ADDRESS "/>\n"
	"  </object>\n"
	"</topology>\n";

struct edit {
	const char *from, *to;
};

/* The node with up to four places changed; each must be there. */
static struct buf node(const struct edit *edits)
{
	struct buf text = {0};

	buf_puts(&text, NODE);
	for (size_t i = 0; i < 4 && edits && edits[i].from; i++) {
		char *at = strstr(text.data, edits[i].from);
		struct buf next = {0};

		if (!at)
			fail_msg("there is no %s", edits[i].from);
		buf_add(&next, text.data, at - text.data);
		buf_puts(&next, edits[i].to);
		buf_puts(&next, at + strlen(edits[i].from));
		buf_free(&text);
		text = next;
	}
	return text;
}

static struct line_index lines_of(const char *text)
{
	struct line_index l;

	assert_int_equal(line_index_build(text, strlen(text), &l), 0);
	return l;
}

static void comes_back(const struct field_layout *layout, const struct line_index *base, const struct buf *doc,
		       const struct buf *diff)
{
	FREED(buf_free) struct buf again = {0};

	assert_ok(field_layout_decode(layout, base, diff->data, diff->len, doc->len, &again, &err));
	assert_string_equal(again.data, doc->data);
}

static struct buf diff_of(const struct field_layout *layout, const struct line_index *base, const struct buf *doc)
{
	struct buf diff = {0};

	buf_add(&diff, "", 0);
	assert_int_equal(field_layout_encode(layout, base, doc->data, doc->len, &diff), 0);
	comes_back(layout, base, doc, &diff);
	return diff;
}

static bool learn(struct field_layout *layout, const struct line_index *base, const struct buf *doc)
{
	struct field_layout wider;
	bool widened;

	assert_int_equal(field_layout_widen(layout, base, doc->data, doc->len, &wider, &widened), 0);
	field_layout_free(layout);
	*layout = wider;
	return widened;
}

TEST(accepts_valid_field_values)
{
	static const struct edit rows[] = {
		{ HOST, "value=\"node18\"" }, { HOST, "value=\"node177\"" }, { HOST, "value=\"node1\"" },
		{ HOST, "value=\"\"" }, { HOST, "value=\"x\"" }, { HOST, "value=\"node17 \"" },
		{ HOST, "value=\"n\xc3\xb6" "de17\"" },
		{ HOST, "value=\"=/ '\"" },
		{ HOST, "value=\"node17node17\"" }, { HOST, "value=\"\xf0\x9f\x8c\xb3\"" },
		{ SERIAL, "value=\"SN-B1234\"" }, { CITY, "value=\"Z\xc3\xb6rich\"" },
		{ CITY, "value=\"Z\xc2\xbcrich\"" }, { CITY, "value=\"Zurich\"" }, { "A&amp;B", "AB" },
		{ MEMORY, "local_memory=\"134756204543\"" }, { MEMORY, "local_memory=\"137438953472\"" },
		{ MEMORY, "local_memory=\"134756208640\"" }, { PAGES, "count=\"1\"" },
		{ PAGES, "count=\"9999999999999999999\"" }, { "count=\"0\"", "count=\"512\"" },
		{ "<topology", "<topology" },
	};
	FREED(line_index_free) struct line_index base = lines_of(NODE);

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc = node((struct edit[]){ rows[i], {0} }), same = node(NULL);
		struct buf diff;
		FREED(field_layout_free) struct field_layout layout = {0};

		if (learn(&layout, &base, &doc) != (strcmp(rows[i].from, rows[i].to) != 0))
			fail_msg("%s: widened or not", rows[i].to);
		assert_false(learn(&layout, &base, &doc));
		diff = diff_of(&layout, &base, &doc);
		buf_free(&diff);
		diff = diff_of(&layout, &base, &same);
		buf_free(&diff);
	}
}

/* The shape depends on them: shape/tier.h, shape/core_kind.h. */
TEST(refuses_another_kind_of_memory_or_core)
{
	static const struct edit rows[] = {
		{ "name=\"City\"", "name=\"DAXType\"" }, { "name=\"City\"", "name=\"CoreType\"" },
		{ "name=\"City\"", "name=\"LinuxCapacity\"" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf text = node((struct edit[]){ rows[i], {0} }),
			doc = node((struct edit[]){ rows[i], { CITY, "value=\"other\"" }, {0} });
		FREED(line_index_free) struct line_index base = lines_of(text.data);
		struct field_layout wider = {0}, none = {0};
		bool widened;

		assert_int_equal(field_layout_widen(&none, &base, doc.data, doc.len, &wider, &widened), 1);
	}
}

TEST(refuses_what_is_more)
{
	static const struct edit rows[] = {
		{ "<info name=\"HostName\"", "<inf0 name=\"HostName\"" }, { "name=\"HostName\"", "nome=\"HostName\"" },
		{ "name=\"HostName\"", "name=\"HostNome\"" }, { "cpuset=\"0x00000003\"", "cpuset=\"0x00000001\"" },
		{ "os_index=\"0\"", "os_index=\"1\"" }, { "gp_index=\"2\"", "gp_index=\"3\"" },
		{ "version=\"2.0\"", "version=\"2.1\"" },
		{ "size=\"4096\"", "size=\"8192\"" }, { "type=\"NUMANode\"", "type=\"NUMANodf\"" },
		{ "</topology>\n", "</topology>" }, { "</topology>\n", "</topology>\n\n" }, { "</topology>\n", "" },
		{ "    </object>\n", "" }, { "  <object", "<object" },
		{ HOST "/>\n", HOST "/>\n    <info name=\"X\" value=\"y\"/>\n" }, { HOST "/>", HOST "/> " },
		{ HOST "/>", HOST ">" }, { HOST, "value=\"node17" }, { HOST, "value=\"no<e17\"" },
		{ HOST, "value=\"no>e17\"" },
		{ HOST, "value=\"no&amp;e17\"" },
		{ HOST, "value=\"no\"e17\"" }, { HOST, "value=\"no\te17\"" }, { HOST, "value=\"no\ne17\"" },
		{ HOST, "value=\"no\x7f" "e17\"" },
		{ HOST, "value=\"no\x01" "e17\"" }, { HOST, "value=\"\xc3\"" }, { HOST, "value=\"\xa4\"" },
		{ HOST, "value=\"\xc0\x80\"" },
		{ HOST, "value=\"\xc2\x85\"" }, { HOST, "value=\"\xe0\x80\xaf\"" }, { HOST, "value=\"\xed\xa0\x80\"" },
		{ HOST, "value=\"\xef\xbf\xbf\"" }, { HOST, "value=\"\xf4\x90\x80\x80\"" }, { HOST, "value=\"\xff\"" },
		{ HOST, "value=\"\xf0\x9f\x8c\"" }, { PAGES, "count=\"3289946x\"" }, { PAGES, "count=\"\"" },
		{ PAGES, "count=\"-1\"" }, { PAGES, "count=\"+1\"" }, { PAGES, "count=\" 1\"" },
		{ PAGES, "count=\"10000000000000000000\"" }, { MEMORY, "local_memory=\"67378102272\"" },
		{ MEMORY, "local_memory=\"128849018880\"" }, { MEMORY, "local_memory=\"137438953473\"" },
		{ MEMORY, "local_memory=\"134756204544a\"" },
		{ MEMORY, "local_memory=\"\"" }, { MEMORY, "local_memory=\"0x10\"" }, { MEMORY, "local_memory=\" 1\"" },
		{ MEMORY, "local_memory=\"134756204544\" x=\"1\"" }, { MEMORY, "os_memory=\"134756204544\"" },
	};
	FREED(line_index_free) struct line_index base = lines_of(NODE);

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc = node((struct edit[]){ rows[i], {0} }), diff = {0};
		struct field_layout wider = {0}, none = {0};
		bool widened;

		if (field_layout_widen(&none, &base, doc.data, doc.len, &wider, &widened) != 1 ||
		    field_layout_encode(&none, &base, doc.data, doc.len, &diff) != 1)
			fail_msg("taken: %s", rows[i].to);
		assert_null(wider.fields);
	}
}

/* What is stored, to the byte: of each row's document, by the layout learned from it and all before. */
TEST(stores_few_bytes)
{
	static const struct {
		struct edit edits[4];
		const char *diff;
		size_t len;
	} rows[] = {
		{ { { HOST, "value=\"node18\"" } }, "\x80", 1 },
		{ { { HOST, "value=\"node29\"" } }, "\x29", 1 },
		{ { { HOST, "value=\"node2\"" } }, "2\n", 2 },
		{ { { SERIAL, "value=\"SN-A1235\"" } }, "\x50" "17\n", 4 },
		{ { { SERIAL, "value=\"SN-A6234\"" } }, "\x62\x34" "17\n", 5 },
		{ { { SERIAL, "value=\"SN-B1234\"" } }, "B123417\n", 8 },
		{ { { MEMORY, "local_memory=\"134756208640\"" }, { PAGES, "count=\"32899465\"" } },
		  "\x86\x40" "A123417\n", 10 },
		{ { { NODE_GUID, "value=\"506b:4b03:003d:aee8\"" }, { IMAGE_GUID, "value=\"506b:4b03:003d:aee8\" " },
		    { ADDRESS, "value=\"20:00:50:6b:4b:03:00:3d:ae:e8\"" } }, "\x45\x44\xda" "A123417\n", 11 },
	};
	FREED(line_index_free) struct line_index base = lines_of(NODE);
	FREED(field_layout_free) struct field_layout layout = {0};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc = node(rows[i].edits), diff;

		assert_true(learn(&layout, &base, &doc));
		diff = diff_of(&layout, &base, &doc);
		if (diff.len != rows[i].len || memcmp(diff.data, rows[i].diff, diff.len))
			fail_msg("row %zu keeps %zu bytes: %s", i, diff.len, diff.data);
	}
}

/*
 * Each document widens the layout; the wider one fits all before, and what an earlier layout encoded it still decodes.
 */
TEST(wider_layouts_fit_all_before)
{
	static const struct edit rows[][4] = {
		{ { HOST, "value=\"node18\"" } },
		{ { NODE_GUID, "value=\"506b:4b03:003c:aee8\"" }, { IMAGE_GUID, "value=\"506b:4b03:003c:aee8\" " },
		  { ADDRESS, "value=\"20:00:50:6b:4b:03:00:3c:ae:e8\"" } },
		{ { NODE_GUID, "value=\"506b:4b03:0b1d:aee8\"" }, { IMAGE_GUID, "value=\"506b:4b03:0b1d:aee8\" " },
		  { ADDRESS, "value=\"20:00:50:6b:4b:03:0b:1d:ae:e8\"" } },
		{ { MEMORY, "local_memory=\"134756200448\"" }, { PAGES, "count=\"32899463\"" } },
		{ { IMAGE_GUID, "value=\"506b:4b03:003c:eee0\" " },
		  { ADDRESS, "value=\"20:00:50:6b:4b:03:00:3c:ee:e0\"" } },
		{ { ADDRESS, "value=\"20:00:50:6b:4b:03:00:3c:ee:e1\"" } },
		{ { MEMORY, "local_memory=\"134756200448\"" }, { PAGES, "count=\"5\"" } },
		{ { NODE_GUID, "value=\"-\"" }, { IMAGE_GUID, "value=\"\" " }, { ADDRESS, "value=\"none, yet\"" } },
		{ { CITY, "value=\"Z\xc3\xb6rich\"" }, { HOST, "value=\"\"" } },
		{ { "A&amp;B", "AB" }, { SERIAL, "value=\"SN-A1234\xe2\x82\xac\"" } },
	};
	FREED(line_index_free) struct line_index base = lines_of(NODE);
	struct field_layout forms[ROWS(rows)] = {0}, none = {0};
	struct buf docs[ROWS(rows)], diffs[ROWS(rows)];

	for (size_t i = 0; i < ROWS(rows); i++) {
		bool widened;

		docs[i] = node(rows[i]);
		assert_int_equal(field_layout_widen(i ? &forms[i - 1] : &none, &base, docs[i].data, docs[i].len,
						    &forms[i], &widened), 0);
		if (!widened)
			fail_msg("row %zu widens nothing", i);
		diffs[i] = diff_of(&forms[i], &base, &docs[i]);
		for (size_t k = 0; k < i; k++) {
			FREED(buf_free) struct buf diff = diff_of(&forms[i], &base, &docs[k]);

			comes_back(&forms[k], &base, &docs[k], &diffs[k]);
		}
	}
	for (size_t i = 0; i < ROWS(rows); i++) {
		field_layout_free(&forms[i]);
		buf_free(&docs[i]);
		buf_free(&diffs[i]);
	}
}

static struct field_layout form_of_all(const struct line_index *base, struct buf *doc)
{
	static const struct edit all[][4] = {
		{ { HOST, "value=\"node9\"" }, { SERIAL, "value=\"SN-B1234\"" }, { CITY, "value=\"Basel\"" } },
		{ { MEMORY, "local_memory=\"134756208640\"" }, { PAGES, "count=\"32899465\"" } },
		{ { NODE_GUID, "value=\"506b:4b03:003d:aee8\"" }, { IMAGE_GUID, "value=\"506b:4b03:003d:aee8\" " },
		  { ADDRESS, "value=\"20:00:50:6b:4b:03:00:3d:ae:e8\"" } },
	};
	struct field_layout layout = {0};

	for (size_t i = 0; i < ROWS(all); i++) {
		*doc = node(all[i]);
		learn(&layout, base, doc);
		if (i + 1 < ROWS(all))
			buf_free(doc);
	}
	return layout;
}

static void decode_refuses(const struct field_layout *layout, const struct line_index *base, const struct buf *diff,
			   size_t len, size_t max)
{
	FREED(buf_free) struct buf out = {0};
	struct err e = {""};

	buf_puts(&out, "before");
	assert_int_equal(field_layout_decode(layout, base, diff->data, len, max, &out, &e), -1);
	assert_non_null(strstr(e.text, "fields"));
	assert_string_equal(out.data, "before");
}

static void decode_is_right_or_refuses(const struct field_layout *layout, const struct line_index *base,
				       const struct buf *diff)
{
	FREED(buf_free) struct buf out = {0}, again = {0};

	if (!field_layout_decode(layout, base, diff->data, diff->len, MAX, &out, NULL)) {
		assert_int_equal(field_layout_encode(layout, base, out.data, out.len, &again), 0);
		assert_int_equal(again.len, diff->len);
		assert_memory_equal(again.data, diff->data, diff->len);
	}
}

TEST(refuses_spoiled_diffs)
{
	FREED(line_index_free) struct line_index base = lines_of(NODE), other;
	FREED(buf_free) struct buf doc, diff,
		shorter = node((struct edit[]){ { "    <info name=\"HostName\" " HOST "/>\n", "" }, {0} });
	FREED(field_layout_free) struct field_layout layout = form_of_all(&base, &doc);

	other = lines_of(shorter.data);
	diff = diff_of(&layout, &base, &doc);
	decode_refuses(&layout, &other, &diff, diff.len, MAX);
	decode_refuses(&layout, &base, &diff, diff.len, doc.len - 1);
	decode_refuses(&layout, &base, &diff, diff.len, 0);
	decode_refuses(&(struct field_layout){0}, &base, &diff, diff.len, MAX);
	for (size_t n = 0; n < diff.len; n++)
		decode_refuses(&layout, &base, &diff, n, MAX);
	for (size_t bit = 0; bit < 8 * diff.len; bit++) {
		diff.data[bit / 8] ^= 1 << bit % 8;
		decode_is_right_or_refuses(&layout, &base, &diff);
		diff.data[bit / 8] ^= 1 << bit % 8;
	}
	buf_add(&diff, "\n", 1);
	decode_refuses(&layout, &base, &diff, diff.len, MAX);
}

/* As a store that was tampered with may give it. */
TEST(refuses_layouts_of_another_base)
{
	static const struct field rows[] = {
		{ .line = 1000, .alias = -1 }, { .line = 1, .alias = -1 },
		{ .line = 2, .start = 1, .len = 6, .alias = -1 }, { .line = 2, .start = 33, .len = 7, .alias = -1 },
		{ .line = 2, .start = 33, .len = 6, .keep_start = 7, .alias = -1 },
		{ .line = 2, .start = 33, .len = 6, .keep_start = 4, .keep_end = 3, .alias = -1 },
		{ .line = 2, .start = 33, .len = 6, .alias = 0 }, { .line = 2, .start = 33, .len = 6, .alias = 7 },
		{ .line = 2, .start = 33, .len = 6, .keep_start = 4, .alias = -1, .digits = 2 },
		{ .line = 2, .start = 33, .len = 6, .keep_start = 4, .alias = -1, .fixed = true, .digits = 1 },
	};
	static const struct field right = {
		.line = 2, .start = 33, .len = 6, .keep_start = 4, .alias = -1, .fixed = true, .digits = 2,
	};
	FREED(line_index_free) struct line_index base = lines_of(NODE);
	struct field_layout layout = { (struct field[]){ right }, 1 }, two = { (struct field[]){ right, right }, 2 };
	FREED(buf_free) struct buf doc = node((struct edit[]){ { HOST, "value=\"node18\"" }, {0} }),
		diff = diff_of(&layout, &base, &doc);

	assert_int_equal(diff.len, 1);
	decode_refuses(&two, &base, &diff, 1, MAX);
	for (size_t i = 0; i < ROWS(rows); i++) {
		layout.fields[0] = rows[i];
		if (field_layout_encode(&layout, &base, doc.data, doc.len, &diff) != 1)
			fail_msg("row %zu is taken", i);
		decode_refuses(&layout, &base, &diff, 1, MAX);
	}
}

/* A value cut out as SQL does it. */
static void sql_cut(const struct field_layout *layout, const struct line_index *base, size_t i, const struct buf *diff,
		    struct buf *out)
{
	const struct field *f = &layout->fields[i];
	const char *was = base->text + base->starts[f->line] + f->start;
	unsigned at, width, ordinal;

	field_layout_position(layout, i, &at, &width, &ordinal);
	buf_add(out, was, f->keep_start);
	if (f->digits) {
		for (unsigned k = f->keep_start, d = at; k < f->len - f->keep_end; k++) {
			bool digit = strchr("0123456789abcdef", was[k]);
			unsigned char byte = diff->data[d / 2];
			char is = digit ? "0123456789abcdef"[d % 2 ? byte & 15 : byte >> 4] : was[k];

			d += digit;
			buf_add(out, &is, 1);
		}
	} else if (f->fixed) {
		buf_add(out, diff->data + at, width);
	} else {
		const char *line = diff->data + at;

		while (--ordinal)
			line = strchr(line, '\n') + 1;
		buf_add(out, line, strchr(line, '\n') - line);
	}
	buf_add(out, was + f->len - f->keep_end, f->keep_end);
}

TEST(gives_sql_the_positions)
{
	struct line_index base = lines_of(NODE), is;
	struct buf doc, diff;
	FREED(field_layout_free) struct field_layout layout = form_of_all(&base, &doc);

	is = lines_of(doc.data);
	diff = diff_of(&layout, &base, &doc);
	assert_int_equal(layout.n, 8);
	for (size_t i = 0; i < layout.n; i++) {
		const struct field *f = &layout.fields[i];
		const char *value = is.text + is.starts[f->line] + f->start;
		FREED(buf_free) struct buf cut = {0};
		unsigned at[2], width[2], ordinal[2];

		if (f->line == 7) {	/* the pages, told by the memory */
			field_layout_position(&layout, i, &at[0], &width[0], &ordinal[0]);
			field_layout_position(&layout, f->alias, &at[1], &width[1], &ordinal[1]);
			assert_int_equal(at[0], at[1]);
			assert_int_equal(width[0], width[1]);
			continue;
		}
		sql_cut(&layout, &base, i, &diff, &cut);
		if (strncmp(cut.data, value, cut.len) || value[cut.len] != '"')
			fail_msg("line %u: cut out is %s", f->line, cut.data);
	}
	buf_free(&diff);
	buf_free(&doc);
	line_index_free(&base);
	line_index_free(&is);
}

/* More lines differ than a layout has fields: refused at once. */
TEST(refuses_too_many_fields)
{
	FREED(buf_free) struct buf a = {0}, b = {0};
	struct field_layout layout = {0}, wider;
	struct line_index base;
	bool widened;

	for (unsigned i = 0; i < FIELDS_MAX; i++) {
		buf_printf(&a, "<info name=\"n\" value=\"%u\"/>\n", i);
		buf_printf(&b, "<info name=\"n\" value=\"%u\"/>\n", i + 1);
	}
	assert_int_equal(line_index_build(a.data, a.len, &base), 0);
	assert_int_equal(field_layout_widen(&layout, &base, b.data, b.len, &wider, &widened), 0);
	assert_int_equal(wider.n, FIELDS_MAX);
	field_layout_free(&wider);
	line_index_free(&base);
	buf_puts(&a, "<info name=\"n\" value=\"x\"/>\n");
	buf_puts(&b, "<info name=\"n\" value=\"y\"/>\n");
	assert_int_equal(line_index_build(a.data, a.len, &base), 0);
	assert_int_equal(field_layout_widen(&layout, &base, b.data, b.len, &wider, &widened), 1);
	line_index_free(&base);
}

TEST(cuts_lines)
{
	static const struct {
		const char *text;
		unsigned count;
	} rows[] = { { "", 0 }, { "\n", 1 }, { "a", 1 }, { "a\n", 1 }, { "a\nb", 2 }, { "\n\n", 2 },
		     { "a\n\nb\n", 3 } };

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(line_index_free) struct line_index l = lines_of(rows[i].text);

		assert_int_equal(l.count, rows[i].count);
		assert_int_equal(l.starts[0], 0);
		assert_int_equal(l.starts[l.count], strlen(rows[i].text));
	}
}

TEST(rounds_memory)
{
	static const unsigned long long rows[][2] = {
		{ 0, 0 }, { 1, 1 }, { 15, 15 }, { 16, 16 }, { 17, 18 }, { 134756204544, 128ull << 30 },
		{ 201000000000, 192ull << 30 }, { 128ull << 30, 128ull << 30 }, { (128ull << 30) + 1, 144ull << 30 },
		{ 67378102272, 64ull << 30 }, { 120ull << 30, 120ull << 30 }, { (120ull << 30) + 1, 128ull << 30 },
		{ 1ull << 63, 1ull << 63 },
		{ 0xffffffffffffffff, 0xffffffffffffffff },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		if (field_memory_nominal(rows[i][0]) != rows[i][1])
			fail_msg("%llu rounds to %llu", rows[i][0], field_memory_nominal(rows[i][0]));
}

/* --- the base cache --- */

static void add(struct base_cache *s, int base, int layout_id, const char *text,
		struct field_layout layout)
{
	struct cached_base b = { .base = base, .layout_id = layout_id, .text = strdup(text), .len = strlen(text),
				 .layout = layout };

	assert_int_equal(base_cache_add(s, &b), 0);
}

TEST(matches_the_base_that_stores_least)
{
	static const struct edit far[] = { { HOST, "value=\"node99\"" }, { SERIAL, "value=\"SN-Z9999\"" }, {0} };
	OWNED(base_cache_free) struct base_cache *s = base_cache_new(8);
	FREED(buf_free) struct buf other = node(far), doc = node((struct edit[]){ { HOST, "value=\"node18\"" }, {0} }),
		diff = {0};
	const struct cached_base *b = NULL;
	FREED(field_layout_free) struct field_layout wider = {0};

	assert_int_equal(base_cache_match(s, doc.data, doc.len, NULL, NULL, &b, &diff, &wider), -1);
	add(s, 1, 10, other.data, (struct field_layout){0});
	add(s, 2, 20, NODE, (struct field_layout){0});
	add(s, 3, 30, "<topology/>\n", (struct field_layout){0});
	assert_int_equal(base_cache_match(s, doc.data, doc.len, NULL, NULL, &b, &diff, &wider), 1);
	assert_int_equal(b->base, 2);
	assert_int_equal(wider.n, 1);
	assert_null(diff.data);
	add(s, 2, 21, b->text, wider);
	base_cache_release(s, b);
	assert_int_equal(base_cache_match(s, doc.data, doc.len, NULL, NULL, &b, &diff, &wider), 0);
	assert_int_equal(b->base, 2);
	assert_int_equal(b->layout_id, 21);
	assert_int_equal(diff.len, 1);
	base_cache_release(s, b);
	base_cache_drop(s, 2);
	base_cache_drop(s, 7);
	assert_null(base_cache_acquire(s, 2));
	assert_int_equal(base_cache_match(s, doc.data, doc.len, NULL, NULL, &b, &diff, &wider), 1);
	assert_int_equal(b->base, 1);
	base_cache_release(s, b);
}

TEST(groups_near_identical_documents)
{
	static const struct {
		const char *host;	/* NULL: a document of another structure */
		int key, rc, base;
	} rows[] = { { "value=\"node17\"", -1, 1, -1 }, { "value=\"node17\"", 5, 0, 5 },
		     { "value=\"node18\"", 6, 0, 5 }, { "value=\"node19\"", -1, 0, 5 }, { NULL, -1, 1, -1 },
		     { NULL, 6, 0, 6 } };
	OWNED(base_cache_free) struct base_cache *s = base_cache_new(8);
	const struct cached_base *b;

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc = {0};
		int base = -1;

		if (rows[i].host)
			doc = node((struct edit[]){ { HOST, rows[i].host }, {0} });
		else
			buf_add(&doc, "<topology/>\n", strlen("<topology/>\n"));
		assert_int_equal(base_cache_join(s, doc.data, doc.len, rows[i].key, &base), rows[i].rc);
		assert_int_equal(base, rows[i].base);
	}
	b = base_cache_acquire(s, 5);
	assert_int_equal(b->layout.n, 1);
	base_cache_release(s, b);
}

TEST(evicts_the_least_recently_used)
{
	OWNED(base_cache_free) struct base_cache *s = base_cache_new(2);
	const struct cached_base *taken, *b;

	add(s, 1, 0, "one\n", (struct field_layout){0});
	add(s, 2, 0, "two\n", (struct field_layout){0});
	taken = base_cache_acquire(s, 1);
	add(s, 3, 0, "three\n", (struct field_layout){0});
	assert_null(base_cache_acquire(s, 2));
	add(s, 4, 0, "four\n", (struct field_layout){0});
	assert_null(base_cache_acquire(s, 1));
	assert_string_equal(taken->text, "one\n");
	base_cache_release(s, taken);
	b = base_cache_acquire(s, 3);
	base_cache_drop(s, 3);
	assert_string_equal(b->text, "three\n");
	base_cache_release(s, b);
	base_cache_free(NULL);
}

static void *use_base_cache(void *given)
{
	struct base_cache *s = given;

	for (unsigned i = 0; i < 2000; i++) {
		char host[32];
		FREED(buf_free) struct buf doc, diff = {0};
		struct field_layout wider;
		const struct cached_base *b;
		int rc;

		snprintf(host, sizeof(host), "value=\"node%u\"", i % 1000);
		doc = node((struct edit[]){ { HOST, host }, {0} });
		rc = base_cache_match(s, doc.data, doc.len, NULL, NULL, &b, &diff, &wider);
		if (rc < 0)
			add(s, i % 5, 0, NODE, (struct field_layout){0});
		else if (rc > 0)
			add(s, b->base, 0, b->text, wider);
		else if (i % 7 == 0)
			base_cache_drop(s, b->base);
		if (rc >= 0)
			base_cache_release(s, b);
	}
	return NULL;
}

TEST(serves_threads)
{
	OWNED(base_cache_free) struct base_cache *s = base_cache_new(3);
	pthread_t threads[2];

	for (size_t i = 0; i < ROWS(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_base_cache, s), 0);
	for (size_t i = 0; i < ROWS(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

TESTS_MAIN(NULL, NULL)
