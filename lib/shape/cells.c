/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdlib.h>


/* For each core, the innermost object around it that has memory of its own, or -1: holder[] by the core's object. */
static long *holders_of(const struct tree *t, const struct tree_extent *s)
{
	bool *holds = calloc(t->n, sizeof(*holds));
	long *holder = calloc(t->n, sizeof(*holder));

	for (size_t i = 0; holds && i < t->n; i++)
		if (tree_object_is(t, i, "NUMANode"))
			holds[tree_extent_around(t, s, i)] = true;
	for (size_t i = 0; holds && holder && i < t->n; i++)
		holder[i] = holds[i] ? (long)i : i ? holder[t->objects[i].parent] : -1;
	free(holds);
	return holder;
}

/* Whether every core has memory, and the cores of each memory are contiguous. -1 when memory is short. */
static int are_whole(const struct tree *t, const struct tree_extent *s, const long *holder)
{
	bool *left = calloc(t->n, sizeof(*left));
	int whole = left ? 1 : -1;
	long at = -2;		/* of no core yet */

	for (size_t i = 0; whole > 0 && i < t->n; i++) {
		if (s[i].core != (long)i || holder[i] == at)
			continue;
		if (at >= 0)
			left[at] = true;
		at = holder[i];
		whole = at >= 0 && !left[at];
	}
	free(left);
	return whole;
}

static void core_add(struct runs *cores, unsigned pus, struct buf *body)
{
	body->len = 0;
	buf_printf(body, " PU:%u", pus);
	runs_add(cores, "Core", body);
}

static void cell_end(struct runs *cores, struct runs *cells, struct buf *body)
{
	body->len = 0;
	runs_append(cores, body);
	if (body->len)
		runs_add(cells, "NUMANode", body);
}

static void write_cells(const struct tree *t, const struct tree_extent *s, const long *holder, bool whole,
			struct buf *out)
{
	struct runs cores = {0}, cells = {0};
	struct buf body = {0};
	long at = -1;

	for (size_t i = 0; i < t->n; i++) {
		if (s[i].core != (long)i)
			continue;
		if (whole && holder[i] != at)
			cell_end(&cores, &cells, &body);
		at = holder[i];
		core_add(&cores, s[i].pus, &body);
	}
	if (whole)
		cell_end(&cores, &cells, &body);
	runs_append(whole ? &cells : &cores, out);
	out->failed |= body.failed;
	buf_free(&body);
	runs_free(&cores);
	runs_free(&cells);
}

int cells_append(const struct tree *t, const struct tree_extent *extents, struct buf *out)
{
	long *holder = holders_of(t, extents);
	int whole = holder ? are_whole(t, extents, holder) : -1;

	if (whole >= 0)
		write_cells(t, extents, holder, whole, out);
	free(holder);
	return whole < 0 || out->failed ? -1 : 0;
}
