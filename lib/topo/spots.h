/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_SPOTS_H
#define TOPIARY_TOPO_SPOTS_H

#include <string.h>

#include "topo/fields.h"

/*
 * The places of a base's text where twins may differ, and where a document differs there from a base: fields.c's eyes.
 */
struct span {
	const char *at;
	size_t len;
};

static inline bool span_equal(struct span a, struct span b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static inline struct span span_cut(struct span s, size_t start, size_t end)
{
	return (struct span){ s.at + start, s.len - start - end };
}

#define NUMBER_DIGITS 19	/* at most: such numbers fit 64 bits */

bool number_read(struct span s, unsigned long long *out);

enum spot_kind { SPOT_TEXT, SPOT_COUNT, SPOT_MEMORY };

/* The one value of a base's line that may differ. */
struct spot {
	enum spot_kind kind;
	struct span line, value;
};

bool spot_find(const struct lined *base, unsigned line, struct spot *out);

/* May a document have this value there? */
bool spot_fits(const struct spot *s, struct span is);

/* Of a count: the size of its pages. */
bool spot_page_size(const struct spot *s, unsigned long long *out);

struct change {
	unsigned line;
	struct spot spot;
	struct span is;
};

struct changes {
	size_t n;
	struct change list[FORM_MAX];
};

/* All changes from base to doc; false when there is one that no field can hold, or there are too many. */
bool changes_find(const struct lined *base, struct span doc, struct changes *out);

#endif
