/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "delta/differences.h"

/*
 * Nodes of one model export the same XML except for a few values: names, serial numbers, addresses, some bytes of
 * memory. The positions of these values in the text of a base are its fields; of every other node only the values of
 * the fields are stored. The rest of both texts is equal byte for byte, so a text that differs in fields alone is as
 * valid as its base and has the same shape: it needs no XML parser.
 *
 * A field is the value of one attribute in one line, limited to attributes that do not affect the tree: `value` of
 * <info>, `count` of <page_type>, `local_memory` of <object>; at most one per line. Values accepted from a node: digits
 * for a count or a memory size; valid UTF-8 without control characters, '<', '>', '"' and '&' for an <info>. A memory
 * size must round to the same nominal size as the base's (field_memory_nominal); otherwise the node lost or gained
 * memory, which is not a small difference.
 *
 * A field layout lists the fields of a base and what all nodes have in common in them. It is learned: each node that
 * does not fit widens it, and a wider layout still fits every node that the narrower one fitted.
 *
 * A field with an alias is not stored, because its value follows from that of an earlier field: values that are equal
 * in every node (of hex fields the digits: a GUID and the address derived from it), and a count of pages whose alias is
 * a local_memory, because the kernel derives the number of pages from it.
 *
 * Callers: base_cache.c, the registry (store, upkeep), `topiary pack`.
 */
struct field {
	unsigned line;			/* of the base's text, from 0 */
	unsigned start, len;		/* of the base's value, in bytes from the start of that line */
	unsigned keep_start, keep_end;	/* bytes at either end that are equal in all nodes; the rest is the middle */
	int alias;			/* the earlier field from which the value follows: not stored; or -1 */
	bool fixed;			/* the middle is ASCII and has the base's length in every node */
	unsigned digits;		/* of 0-9a-f in a fixed middle that differs in nothing else: hex field; or 0 */
};

struct field_layout {
	struct field *fields;	/* sorted by line */
	size_t n;
};

void field_layout_free(struct field_layout *l);

/*
 * Widen a layout (which may be empty) until doc fits. 0: *out is the wider layout, *widened whether it differs from the
 * given one. 1: doc differs from the base in more than fields. -1: memory is short. Out-parameters untouched unless 0.
 */
int field_layout_widen(const struct field_layout *layout, const struct line_index *base, const char *doc, size_t len,
		       struct field_layout *out, bool *widened);

/*
 * Append what is stored of doc: the digits of the hex fields, two per byte, the last byte padded with 0; then the
 * middles of the other fixed fields, one after another; then those of the remaining fields, each terminated by a
 * newline. Fields with an alias store nothing. 0, 1 when doc does not fit the layout, -1 when memory is short.
 */
int field_layout_encode(const struct field_layout *layout, const struct line_index *base, const char *doc, size_t len,
			struct buf *out);

/*
 * Append the document that diff was made of. 0, or -1 with an error when diff does not match the layout or the layout
 * does not match base; at most max bytes are appended, none on an error. Any result is a text that fits the layout,
 * whatever is in diff; whether it is the original is for the caller to check, by its hash.
 */
int field_layout_decode(const struct field_layout *layout, const struct line_index *base, const char *diff,
			size_t diff_len, size_t max, struct buf *out, struct err *e);

/*
 * Where field_layout_encode writes the middle of field i, for the SQL views that decode it. A hex field: *at is the
 * first of its *width digits in encode(diff, 'hex'), from 0; they replace the digits of the base's middle one by one.
 * Another fixed field: *at is its byte offset from 0, *width its length; *ordinal is 0. Otherwise *width is 0 and the
 * middle is line *ordinal (from 1) of the lines that begin at *at. A field with an alias has the position of its alias
 * (of pages: that of the memory).
 */
void field_layout_position(const struct field_layout *layout, size_t i, unsigned *at, unsigned *width,
			   unsigned *ordinal);
