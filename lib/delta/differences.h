/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_DELTA_DIFFERENCES_H
#define TOPIARY_DELTA_DIFFERENCES_H

#include <string.h>

#include "delta/field_layout.h"

/*
 * The positions in a base's text at which a field is possible, and the differences of a document at these positions.
 * Called by field_layout.c and field_layout_widen.c.
 */
struct delta_span {
	const char *at;
	size_t len;
};

static inline bool span_equal(struct delta_span a, struct delta_span b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static inline struct delta_span span_cut(struct delta_span s, size_t start, size_t end)
{
	return (struct delta_span){ s.at + start, s.len - start - end };
}

#define NUMBER_DIGITS 19	/* most digits accepted: always fits 64 bits */

bool field_number_read(struct delta_span s, unsigned long long *out);

enum field_kind { FIELD_TEXT, FIELD_COUNT, FIELD_MEMORY };

/* The one value in a line of a base that can be a field. */
struct field_position {
	enum field_kind kind;
	struct delta_span line, value;
};

bool field_position_find(const struct line_index *base, unsigned line, struct field_position *out);

/* Is this a value that a field at this position may have? */
bool field_position_accepts(const struct field_position *p, struct delta_span is);

/* The page size, of a count of pages. */
bool field_position_page_size(const struct field_position *p, unsigned long long *out);

struct difference {
	unsigned line;
	struct field_position position;
	struct delta_span is;
};

struct differences {
	size_t n;
	struct difference list[FIELDS_MAX];
};

/* All differences of doc from base; false when one is not the value of a possible field, or there are too many. */
bool differences_find(const struct line_index *base, struct delta_span doc, struct differences *out);

#endif
