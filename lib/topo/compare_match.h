/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_COMPARE_MATCH_H
#define TOPIARY_TOPO_COMPARE_MATCH_H

#include <stdbool.h>

#include "topo/tree.h"

/*
 * Which object of one tree is which of the other. Packages are the same when they share a PU's OS index; within them so are dies,
 * caches, cores and groups, and what is left over of a type in a package is taken in turn: it was numbered anew. NUMA nodes go by OS
 * index, PCI devices by bus id and what card it is, OS devices by where they are plugged in, else by name.
 */
struct side {
	const struct tree *t;
	int *partner;		/* an index into the other side's objects, or -1 */
	int *package;		/* the package an object is in or is, else the root */
	bool *vacant;		/* has no PU with a partner */
	bool *offline;		/* has PUs, none with a partner, and the other side's machine has them all, but not in use */
};

struct match {
	struct side side[2];
};

/* 0, or -1 when memory is short. The trees are borrowed. Free with match_free. */
int match_make(const struct tree *a, const struct tree *b, struct match *out);
void match_free(struct match *m);

/* The end of the subtree that begins at object: the index after its last. */
size_t tree_end(const struct tree *t, size_t object);

static inline bool tree_is(const struct tree *t, size_t object, const char *type)
{
	const char *name = t->objects[object].type->name;

	return name[0] == type[0] && !__builtin_strcmp(name, type);
}

#endif
