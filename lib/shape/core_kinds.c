/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <hwloc/bitmap.h>
#include <stdlib.h>
#include <string.h>

struct kind_list {
	struct core_kind_facts facts[CORE_KINDS_HWLOC];
	hwloc_bitmap_t pus[CORE_KINDS_HWLOC];
	unsigned char kinds[CORE_KINDS_HWLOC];
	unsigned n;
	bool failed;
};

/* The infos of a kind follow it. */
static void list_read(const struct tree *t, struct kind_list *l)
{
	bool inside = false;

	for (size_t i = 0; i < t->nextras && !l->failed; i++) {
		const struct tree_extra *x = &t->extras[i];
		const char *efficiency = tree_extra_attr(x, "forced_efficiency");

		if (inside && x->element->tag == TAG_INFO) {
			core_kind_read(&l->facts[l->n - 1], tree_extra_attr(x, "name"), tree_extra_attr(x, "value"));
			continue;
		}
		inside = x->element->tag == TAG_CPUKIND && l->n < CORE_KINDS_HWLOC;
		if (!inside)
			continue;
		l->facts[l->n].efficiency = efficiency ? strtol(efficiency, NULL, 10) : -1;
		l->failed = !(l->pus[l->n] = hwloc_bitmap_alloc());
		if (!l->failed)
			hwloc_bitmap_sscanf(l->pus[l->n++], tree_extra_attr(x, "cpuset"));
	}
}

/* The number of hwloc's kind that has the PU, or -1. */
static long kind_of_pu(const struct kind_list *l, long pu)
{
	for (unsigned i = 0; pu >= 0 && i < l->n; i++)
		if (hwloc_bitmap_isset(l->pus[i], pu))
			return i;
	return -1;
}

/* A core is of the kind of its first PU. */
static bool cores_mark(const struct tree *t, const struct tree_extent *s, const struct kind_list *l,
		       unsigned char *kinds)
{
	for (size_t i = t->n; i-- > 0;) {
		long core = s[i].core, kind;

		if (!tree_object_is(t, i, "PU"))
			continue;
		if ((kind = kind_of_pu(l, t->objects[i].os_index)) < 0)
			return false;
		kinds[core] = l->kinds[kind];
	}
	return true;
}

unsigned char *core_kinds_find(const struct tree *t, const struct tree_extent *extents)
{
	struct kind_list *l = calloc(1, sizeof(*l));
	unsigned char *kinds = calloc(t->n, sizeof(*kinds));

	if (l)
		list_read(t, l);
	if (l && kinds && core_kinds_rank(l->facts, l->n, l->kinds) > 1 && !cores_mark(t, extents, l, kinds))
		memset(kinds, 0, t->n);
	if (!l || l->failed) {
		free(kinds);
		kinds = NULL;
	}
	for (unsigned i = 0; l && i < l->n; i++)
		hwloc_bitmap_free(l->pus[i]);
	free(l);
	return kinds;
}
