/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/linediff.h"

#include <stdint.h>
#include <string.h>

struct span {
	const char *at;
	size_t len;
};

/* The next line with its line end, taken off rest; of length 0 at the end. */
static struct span line_next(struct span *rest)
{
	const char *nl = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
	struct span line = { rest->at, nl ? (size_t)(nl + 1 - rest->at) : rest->len };

	rest->at += line.len;
	rest->len -= line.len;
	return line;
}

static void put_varint(struct buf *out, size_t n)
{
	unsigned char byte;

	do {
		byte = (n & 0x7f) | (n > 0x7f ? 0x80 : 0);
		buf_add(out, &byte, 1);
	} while (n >>= 7);
}

static int get_varint(struct span *in, size_t *n)
{
	size_t value = 0;

	for (unsigned shift = 0; in->len && shift < 32; shift += 7) {
		unsigned char byte = *in->at++;

		in->len--;
		value |= (size_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*n = value;
			return 0;
		}
	}
	return -1;
}

static size_t common_start(struct span a, struct span b)
{
	size_t n = 0, most = a.len < b.len ? a.len : b.len;

	while (n < most && a.at[n] == b.at[n])
		n++;
	return n;
}

static size_t common_end(struct span a, struct span b, size_t taken)
{
	size_t n = 0, most = (a.len < b.len ? a.len : b.len) - taken;

	while (n < most && a.at[a.len - 1 - n] == b.at[b.len - 1 - n])
		n++;
	return n;
}

static void put_change(struct buf *out, size_t skipped, struct span was, struct span is)
{
	size_t start = common_start(was, is), end = common_end(was, is, start);

	put_varint(out, skipped);
	put_varint(out, start);
	put_varint(out, end);
	put_varint(out, is.len - start - end);
	buf_add(out, is.at + start, is.len - start - end);
}

int linediff_make(const char *base, size_t base_len, const char *doc, size_t len, struct buf *out)
{
	struct span old = { base, base_len }, new = { doc, len };
	size_t skipped = 0;

	while (old.len && new.len) {
		struct span was = line_next(&old), is = line_next(&new);

		if (was.len == is.len && !memcmp(was.at, is.at, is.len)) {
			skipped++;
			continue;
		}
		put_change(out, skipped, was, is);
		skipped = 0;
	}
	return old.len || new.len || out->failed ? -1 : 0;
}

static int put(struct buf *out, const char *bytes, size_t len, size_t *left)
{
	if (len > *left)
		return -1;
	*left -= len;
	buf_add(out, bytes, len);
	return 0;
}

static int apply_change(struct span *base, struct span *diff, size_t *left, struct buf *out)
{
	size_t skip, start, end, middle;
	const char *from = base->at;
	struct span was;

	if (get_varint(diff, &skip) || get_varint(diff, &start) || get_varint(diff, &end) || get_varint(diff, &middle))
		return -1;
	while (skip-- && base->len)
		line_next(base);
	if (put(out, from, base->at - from, left) || !base->len)
		return -1;
	was = line_next(base);
	if (start > was.len || end > was.len - start || middle > diff->len)
		return -1;
	if (put(out, was.at, start, left) || put(out, diff->at, middle, left) ||
	    put(out, was.at + was.len - end, end, left))
		return -1;
	diff->at += middle;
	diff->len -= middle;
	return 0;
}

int linediff_apply(const char *base, size_t base_len, const char *diff, size_t diff_len, size_t max, struct buf *out)
{
	struct span old = { base, base_len }, rest = { diff, diff_len };

	while (rest.len)
		if (apply_change(&old, &rest, &max, out))
			return -1;
	if (put(out, old.at, old.len, &max))
		return -1;
	return out->failed ? -1 : 0;
}
