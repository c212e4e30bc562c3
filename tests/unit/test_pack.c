/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "delta/pack.h"

#define MAX (16u << 20)

/* A node's document in small: lines alike but for numbers, those of a node told apart by its seed. */
static struct buf node(unsigned seed, unsigned lines)
{
	struct buf b = {0};

	for (unsigned i = 0; i < lines; i++)
		buf_printf(&b, "  <object type=\"PU\" os_index=\"%u\" serial=\"%08x\"/>\n", i,
			   (i % 16 ? 0 : seed + i) * 2654435761u);
	return b;
}

static struct buf text(const char *s)
{
	struct buf b = {0};

	buf_puts(&b, s);
	return b;
}

/* The bytes it takes. */
static size_t comes_back(const struct buf *base, const struct buf *doc)
{
	const char *from = base ? base->data : NULL;
	size_t from_len = base ? base->len : 0, len;
	FREED(buf_free) struct buf back;
	struct pack p;

	assert_ok(pack_make(from, from_len, doc->data, doc->len, &p, &err));
	assert_int_equal(p.kind, base ? PACK_PATCH : PACK_BASE);
	assert_ok(pack_open(p.kind, p.bytes.data, p.bytes.len, from, from_len, doc->len, &back, &err));
	assert_int_equal(back.len, doc->len);
	assert_memory_equal(back.data, doc->data, doc->len);
	len = p.bytes.len;
	buf_free(&p.bytes);
	return len;
}

TEST(packs_small_texts)
{
	static const char *const rows[][2] = {
		{ "", "" }, { "", "a" }, { "a", "" }, { "a", "b" }, { "a\n", "a" }, { "a", "a\n" },
		{ "\n\n\n", "\n\n\n" }, { "aa\n", "aaa\n" }, { "aaa\n", "aa\n" }, { "a\nb\nc\n", "a\nB\nc\n" },
		{ "a\nb\n", "x\ny" }, { "abab\n", "ab\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf base = text(rows[i][0]), doc = text(rows[i][1]);

		comes_back(&base, &doc);
		comes_back(NULL, &doc);
	}
}

TEST(packs_nodes_small)
{
	FREED(buf_free) struct buf base = node(1, 400), twin = node(2, 400), shorter = node(1, 399);
	size_t alone = comes_back(NULL, &base);

	assert_true(alone < base.len / 8);
	assert_true(comes_back(&base, &twin) < alone);
	assert_true(comes_back(&base, &shorter) < alone / 8);
}

static void opens_right_or_not(const struct pack *p, const struct buf *base, const struct buf *doc)
{
	struct buf out;

	if (pack_open(p->kind, p->bytes.data, p->bytes.len, base->data, base->len, MAX, &out, NULL))
		return;
	assert_int_equal(out.len, doc->len);
	assert_memory_equal(out.data, doc->data, doc->len);
	buf_free(&out);
}

/*
 * Cut anywhere, one bit turned anywhere, too little room, another base: an error or the document, never another
 * document.
 */
static void spoil(const struct pack *p, const struct buf *base, const struct buf *doc)
{
	struct buf out;

	for (size_t n = 0; n < p->bytes.len; n++)
		if (!pack_open(p->kind, p->bytes.data, n, base->data, base->len, MAX, &out, &err))
			fail_msg("kind %d: opened %zu of %zu bytes", p->kind, n, p->bytes.len);
	for (size_t bit = 0; bit < 8 * p->bytes.len; bit++) {
		p->bytes.data[bit / 8] ^= 1 << bit % 8;
		opens_right_or_not(p, base, doc);
		p->bytes.data[bit / 8] ^= 1 << bit % 8;
	}
	assert_int_equal(pack_open(p->kind, p->bytes.data, p->bytes.len, base->data, base->len, doc->len - 1, &out,
				   &err), -1);
}

TEST(refuses_spoiled_packs)
{
	FREED(buf_free) struct buf base = node(1, 64), shorter = node(3, 60), other = node(9, 64);
	struct buf out;
	const struct {
		const struct buf *base, *doc;
		enum pack_kind kind;
	} rows[] = {
		{ NULL, &base, PACK_BASE }, { &base, &shorter, PACK_PATCH },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		const struct buf *from = rows[i].base ? rows[i].base : &base;
		struct pack p;

		assert_int_equal(pack_make(rows[i].base ? from->data : NULL, from->len, rows[i].doc->data,
					   rows[i].doc->len, &p, &err),
				 0);
		assert_int_equal(p.kind, rows[i].kind);
		spoil(&p, from, rows[i].doc);
		if (rows[i].base) {
			opens_right_or_not(&p, &other, rows[i].doc);
			assert_int_equal(pack_open(p.kind, p.bytes.data, p.bytes.len, "", 0, MAX, &out, &err), -1);
			assert_int_equal(pack_open(p.kind, p.bytes.data, p.bytes.len, NULL, 0, MAX, &out, &err), -1);
		}
		buf_free(&p.bytes);
	}
}

static void zip_refuses(const struct buf *zip, size_t max, const char *says)
{
	struct err e = {0};
	struct buf out;

	if (!zip_open(zip->data, zip->len, max, &out, &e))
		fail_msg("opened: %s", says);
	if (!strstr(e.text, says))
		fail_msg("says \"%s\", not \"%s\"", e.text, says);
}

TEST(zips)
{
	FREED(buf_free) struct buf doc = node(1, 400), zip, back, junk = text("<topology/>"), twice = {0};

	assert_int_equal(zip_make(doc.data, doc.len, &zip, &err), 0);
	assert_int_equal(zip_open(zip.data, zip.len, doc.len, &back, &err), 0);
	assert_int_equal(back.len, doc.len);
	assert_memory_equal(back.data, doc.data, doc.len);
	zip_refuses(&zip, doc.len - 1, "allowed");
	zip_refuses(&junk, MAX, "not zstd");
	buf_add(&twice, zip.data, zip.len);
	buf_add(&twice, zip.data, zip.len);
	zip_refuses(&twice, MAX, "after the frame");
	for (zip.len--; zip.len; zip.len--)
		assert_int_equal(zip_open(zip.data, zip.len, MAX, &back, &err), -1);
}

/* 8 MiB of zeros make a frame of some hundred bytes. */
TEST(survives_bombs)
{
	OWNED(free) char *zeros = calloc(8, 1 << 20);
	FREED(buf_free) struct buf zip;

	assert_non_null(zeros);
	assert_int_equal(zip_make(zeros, 8 << 20, &zip, &err), 0);
	assert_true(zip.len < 4096);
	zip_refuses(&zip, MAX, "allowed");
}

TESTS_MAIN(NULL, NULL)
