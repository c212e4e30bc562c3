/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/spans.h"

#include <stdlib.h>
#include <string.h>

bool object_is(const struct tree *t, size_t object, const char *type)
{
	return !strcmp(t->objects[object].type->name, type);
}

/* Downwards: what depends on the objects around and before. */
static void enter(const struct tree *t, struct span *s, size_t i, unsigned *cores)
{
	long parent = t->objects[i].parent, around = parent < 0 ? -1 : s[parent].core;
	bool pu = object_is(t, i, "PU"), core = around < 0 && (pu || object_is(t, i, "Core"));

	s[i] = (struct span){ .next = i + 1, .core = core ? (long)i : around, .pus = pu, .cores = core, .first = *cores };
	*cores += core;
}

struct span *spans_of(const struct tree *t)
{
	struct span *s = calloc(t->n + 1, sizeof(*s));
	unsigned cores = 0;

	if (!s)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		enter(t, s, i, &cores);
	for (size_t i = t->n; i-- > 1;) {
		struct span *up = &s[t->objects[i].parent];

		up->pus += s[i].pus;
		up->cores += s[i].cores;
		if (up->next < s[i].next)
			up->next = s[i].next;
	}
	return s;
}

size_t span_around(const struct tree *t, const struct span *s, size_t object)
{
	while (object && !s[object].cores)
		object = t->objects[object].parent;
	return object;
}
