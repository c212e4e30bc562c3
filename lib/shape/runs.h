/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_RUNS_H
#define TOPIARY_SHAPE_RUNS_H

#include "base/buf.h"

/*
 * The children of one object as text, equal ones that follow each other counted: "Core:8 PU:2", or in braces where they
 * differ.
 */
struct runs {
	unsigned n, count;	/* runs before the last one; children in that */
	const char *type;	/* of the last one, NULL while there is none; borrowed */
	struct buf done, last;
};

/* One more child of this type, with this text after its count: attributes and what is below it. */
void runs_add(struct runs *r, const char *type, const struct buf *body);

/*
 * Append " Core:8 PU:2" or " { Core:6 PU:2 | Core:8 PU:1 }" to out, nothing when there was no child, and leave r empty.
 */
void runs_append(struct runs *r, struct buf *out);

void runs_free(struct runs *r);

#endif
