/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_DIRECTORY_H
#define TOPIARY_SHAPE_DIRECTORY_H

#include "base/err.h"
#include "base/string_map.h"
#include "shape/snapshot.h"

/* The nodes of a snapshot by name: constant time, for 100,000 nodes and more. {0} is an empty one. */
struct directory {
	struct string_map names;
	const struct shape **shape;	/* by the number of the name; borrowed from the snapshot */
};

/*
 * 0, or -1 with an error: memory, an invalid host list, more names than hostlist.h allows, a node with two shapes. Free
 * it in either case.
 */
int directory_fill(struct directory *d, const struct snapshot *s, struct err *e);
void directory_free(struct directory *d);

/* NULL: unknown node. */
const struct shape *directory_shape(const struct directory *d, const char *node);

#endif
