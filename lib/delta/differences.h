/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * The positions in a base's text at which a field is possible (delta/field_layout.h), and the differences of a document
 * at these positions. Called by field_layout.c and base_cache.c; line_index and the nominal memory by others, too.
 */
#define FIELDS_MAX 1024	/* a document that differs in more is stored another way (delta/pack.h) */

/* The offsets of a text's lines; text is borrowed. 0, or -1 when memory is short or the text is longer than 4 GiB. */
struct line_index {
	const char *text;
	size_t len;
	unsigned *starts;	/* starts[count + 1]: offset of each line, then len */
	unsigned count;
};
int line_index_build(const char *text, size_t len, struct line_index *out);
void line_index_free(struct line_index *l);

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

/*
 * The installed memory, from what the kernel reports: rounded up to a sixteenth of the next power of two (134756204544
 * gives 128 GiB, 201 GB gives 192 GiB). 0 gives 0.
 */
unsigned long long field_memory_nominal(unsigned long long bytes);
