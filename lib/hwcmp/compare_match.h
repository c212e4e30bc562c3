/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWCMP_COMPARE_MATCH_H
#define TOPIARY_HWCMP_COMPARE_MATCH_H

#include <hwloc/bitmap.h>
#include <stdbool.h>

#include "hwxml/tree.h"

/*
 * Matches the objects of two trees, for compare.c. Packages match when they share the OS index of a PU; within them so
 * do dies, caches, cores and groups, and the remaining ones of a type in a package are paired in order: they were
 * renumbered. NUMA nodes match by OS index, PCI devices by bus ID and model, OS devices by the device that they belong
 * to, else by name.
 */
struct compare_side {
	const struct tree *t;
	int *partner;		/* an index into the other side's objects, or -1 */
	int *package;		/* the package an object is in or is, else the root */
	bool *vacant;		/* has no matched PU */
	bool *offline;		/* has unmatched PUs that the other machine has but does not use */
};

struct compare_match {
	struct compare_side side[2];
	int newer;	/* the side that a later hwloc exported, or in a later format; -1: neither */
};

/* 0, or -1 when memory is short. The trees are borrowed. Free with compare_match_free. */
int compare_match_make(const struct tree *a, const struct tree *b, struct compare_match *out);
void compare_match_free(struct compare_match *m);

/* The version of hwloc that exported a topology, "" if unknown. */
const char *compare_match_exporter(const struct tree *t);

/*
 * Whether an info differs only because of the exporting hwloc: a later major version reports more, and hwloc 3 replaced
 * some infos of hwloc 2. An info that only the earlier one has is a difference.
 */
bool compare_match_by_format(const struct compare_match *m, const char *name, const char *from, const char *to);

/* A set of CPUs or NUMA nodes as hwloc writes it, empty for NULL. Freed by the caller; NULL when memory is short. */
hwloc_bitmap_t compare_set_parse(const char *text);

/* The index after the last object of the subtree that begins at object. */
size_t compare_tree_end(const struct tree *t, size_t object);

static inline bool compare_tree_is(const struct tree *t, size_t object, const char *type)
{
	const char *name = t->objects[object].type->name;

	return name[0] == type[0] && !__builtin_strcmp(name, type);
}

#endif
