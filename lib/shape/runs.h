/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_RUNS_H
#define TOPIARY_SHAPE_RUNS_H

#include "base/buf.h"

/*
 * The children of one object as text; adjacent equal ones are counted: "Core:8 PU:2", or in braces where they differ.
 */
struct runs {
	unsigned n, count;	/* runs before the last one; children in the last */
	const char *type;	/* of the last one, NULL if there is none; borrowed */
	struct buf done, last;
};

/* Adds a child of this type, with the text that follows its count: attributes and everything below it. */
void runs_add(struct runs *r, const char *type, const struct buf *body);

/* Appends " Core:8 PU:2" or " { Core:6 PU:2 | Core:8 PU:1 }" to out, nothing if there was no child, and empties r. */
void runs_append(struct runs *r, struct buf *out);

void runs_free(struct runs *r);

#endif
