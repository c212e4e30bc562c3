/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_DELTA_FIELD_LAYOUT_INTERNAL_H
#define TOPIARY_DELTA_FIELD_LAYOUT_INTERNAL_H

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

/* Shared by field_layout.c (encode, decode) and field_layout_widen.c. */

static inline bool field_is_stored(const struct field *f)
{
	return f->alias < 0;
}

static inline struct delta_span field_middle(const struct field *f, struct delta_span value)
{
	return span_cut(value, f->keep_start, f->keep_end);
}

bool field_span_is_ascii(struct delta_span s);

size_t field_digits_count(struct delta_span s);

/* Same length, hex digits at the same positions, all other characters equal? */
bool field_digits_match(struct delta_span was, struct delta_span is);

/* Is the middle of f equal to that of g (of hex fields: their digits)? */
bool field_middles_equal(const struct field *f, struct delta_span value, const struct field *g,
			 struct delta_span other);

/* Can this count of pages follow from that memory size, and does it? */
bool field_pages_may_follow(const struct field_position *count, const struct field_position *memory);
bool field_pages_follow(const struct field_position *count, struct delta_span count_is, struct delta_span memory_was,
			struct delta_span memory_is);

/*
 * The positions of the fields in base; false when the layout does not match base: rows of a database are not trusted.
 */
bool field_layout_locate(const struct field_layout *layout, const struct line_index *base,
			 struct field_position positions[FIELDS_MAX]);

#endif
