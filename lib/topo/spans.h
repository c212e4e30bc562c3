/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_SPANS_H
#define TOPIARY_TOPO_SPANS_H

#include <stdbool.h>

#include "topo/tree.h"

/* What each object of a tree covers. A PU outside any core counts as a core of its own. */
struct span {
	size_t next;		/* the object after it and all that is in it */
	long core;		/* the core it is, or is in; -1 */
	unsigned pus, cores;	/* in it; no cores within a core */
	unsigned first;		/* its first core, by the logical numbers of cores */
};

/* One a object, to be freed by the caller; NULL when memory is short. */
struct span *spans_of(const struct tree *t);

bool object_is(const struct tree *t, size_t object, const char *type);

/* The nearest object around a device or memory that has cores, itself when it has; the root when none has. */
size_t span_around(const struct tree *t, const struct span *s, size_t object);

#endif
