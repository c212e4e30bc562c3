/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_DIRECTORY_H
#define TOPIARY_TOPO_DIRECTORY_H

#include "base/err.h"
#include "topo/roster.h"
#include "topo/snapshot.h"

/* The nodes of a snapshot by name: constant time for one of 100,000. {0} is an empty one. */
struct directory {
	struct roster names;
	const struct shape **shape;	/* by the number of the name; borrowed from the snapshot */
	size_t room;
};

/* 0, or -1 with an error: memory, a broken host list, more than HOSTLIST_MAX_NAMES nodes, a node of two shapes. Free it either way. */
int directory_fill(struct directory *d, const struct snapshot *s, struct err *e);
void directory_free(struct directory *d);

/* NULL: there is no such node. */
const struct shape *directory_shape(const struct directory *d, const char *node);

#endif
