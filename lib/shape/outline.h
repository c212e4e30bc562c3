/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_OUTLINE_H
#define TOPIARY_SHAPE_OUTLINE_H

#include "base/buf.h"
#include "hwxml/extents.h"

/*
 * A tree as one line of text (shape/shape.h), appended to out, beginning with a blank. Contains the levels of
 * shape/level.h and other objects with memory, because otherwise a shape would have its memory in the wrong place; or
 * all objects, and the sizes of caches. A PU outside any core counts as a core. An object without PU is left out, and
 * its memory is that of the object around. All memory within a core is the core's. 0, or -1 when memory is short.
 */
struct outline {
	bool all;
	/* The attributes of a NUMA node, appended to out without parentheses; NULL for none. */
	void (*memory)(const struct tree *t, size_t numa, struct buf *out);
	const unsigned char *tiers;	/* by object: write those of NUMA nodes (tiers.h); NULL for none */
	const unsigned char *kinds;	/* by object: write those of cores (core_kinds.h); NULL for none */
};

int outline_append(const struct tree *t, const struct tree_extent *extents, const struct outline *how, struct buf *out);

#endif
