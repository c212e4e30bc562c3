/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_EXTENTS_H
#define TOPIARY_HWXML_EXTENTS_H

#include <stdbool.h>

#include "hwxml/tree.h"

/*
 * What each object of a tree contains: cores, PUs, the objects of its subtree. Used by lib/shape and lib/map/matrix. A
 * PU outside any core counts as a core of its own.
 */
struct tree_extent {
	size_t next;		/* the first object after its subtree */
	long core;		/* the core that it is or belongs to, -1 */
	unsigned pus, cores;	/* number in its subtree, itself included */
	unsigned first;		/* logical index of its first core */
};

/* One per object, freed by the caller; NULL when memory is short. */
struct tree_extent *tree_extents(const struct tree *t);

bool tree_object_is(const struct tree *t, size_t object, const char *type);

/* The nearest ancestor of a device or memory that has cores, the object itself if it has; the root when none has. */
size_t tree_extent_around(const struct tree *t, const struct tree_extent *s, size_t object);

#endif
