/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "hwxml/tree.h"

/* A file of its own: programs that link it need no parser. */

bool tree_object_is(const struct tree *t, size_t object, const char *type)
{
	return !strcmp(t->objects[object].type->name, type);
}

struct tree_extent *tree_extents(const struct tree *t)
{
	struct tree_extent *s = calloc(t->n + 1, sizeof(*s));
	unsigned cores = 0;

	if (!s)
		return NULL;
	for (size_t i = 0; i < t->n; i++) {
		long parent = t->objects[i].parent, around = parent < 0 ? -1 : s[parent].core;
		bool pu = tree_object_is(t, i, "PU"), core = around < 0 && (pu || tree_object_is(t, i, "Core"));

		s[i] = (struct tree_extent){ .next = i + 1, .core = core ? (long) i : around, .pus = pu, .cores = core,
					     .first = cores };
		cores += core;
	}
	for (size_t i = t->n; i-- > 1;) {
		struct tree_extent *up = &s[t->objects[i].parent];

		up->pus += s[i].pus;
		up->cores += s[i].cores;
		if (up->next < s[i].next)
			up->next = s[i].next;
	}
	return s;
}

size_t tree_extent_around(const struct tree *t, const struct tree_extent *s, size_t object)
{
	while (object && !s[object].cores)
		object = t->objects[object].parent;
	return object;
}
