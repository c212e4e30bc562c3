/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_DELTA_FIELD_LAYOUT_INTERNAL_H
#define TOPIARY_DELTA_FIELD_LAYOUT_INTERNAL_H

#include "delta/differences.h"

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
