/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_FIELDS_OWN_H
#define TOPIARY_TOPO_FIELDS_OWN_H

#include "topo/spots.h"

/* What learning a form and using it have in common. */

static inline bool field_is_stored(const struct field *f)
{
	return f->alias < 0;
}

static inline struct span field_middle(const struct field *f, struct span value)
{
	return span_cut(value, f->keep_start, f->keep_end);
}

bool span_is_ascii(struct span s);

/* Of 0-9a-f. */
bool hex_digit(char c);
size_t digits_count(struct span s);

/* Does one have digits where the other has, and all else the same? */
bool digits_fit(struct span was, struct span is);

/* Does a field with this value tell another with that? */
bool middles_equal(const struct field *f, struct span value, const struct field *g, struct span other);

/* Is this a count of pages that may be told by that memory, and is it told? */
bool is_pages(const struct spot *count, const struct spot *memory);
bool pages_tell(const struct spot *count, struct span count_is, struct span memory_was, struct span memory_is);

/* Where the form's fields stand, if it is one of this base: what comes from a store is not taken on trust. */
bool form_spots(const struct form *form, const struct lined *base, struct spot spots[FORM_MAX]);

#endif
