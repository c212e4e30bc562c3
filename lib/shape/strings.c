/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings.h"

#include <stdlib.h>
#include <string.h>

#include "delta/field_layout.h"
#include "shape/strings_parts.h"

static void memory_nominally(const struct tree *t, size_t numa, struct buf *out)
{
	unsigned long long bytes = tree_number(&t->objects[numa], "local_memory", 0);

	if (bytes)
		buf_printf(out, "memory=%llu", field_memory_nominal(bytes));
}

/* hwloc reads memorysidecachesize from 2.10 on. */
static void memory_exactly(const struct tree *t, size_t numa, struct buf *out)
{
	const struct tree_object *o = &t->objects[numa], *around = &t->objects[o->parent];
	unsigned long long bytes = tree_number(o, "local_memory", 0);
	unsigned long long cache = tree_object_is(t, o->parent, "MemCache") ? tree_number(around, "cache_size", 0) : 0;

	if (bytes)
		buf_printf(out, "memory=%llu", bytes);
	if (cache)
		buf_printf(out, "%smemorysidecachesize=%llu", out->len ? " " : "", cache);
}

static int hierarchy_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	static const struct outline how = { .all = false, .memory = NULL };

	return outline_append(t, s, &how, out);
}

static int detail_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	static const struct outline how = { .all = true, .memory = memory_exactly };

	return outline_append(t, s, &how, out) || indexes_append(t, s, out) ? -1 : 0;
}

static int allocation_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	unsigned char *tiers = tiers_find(t, s), *kinds = core_kinds_find(t, s);
	struct outline how = { .all = false, .memory = memory_nominally, .tiers = tiers, .kinds = kinds };
	int rc = -1;

	if (tiers && kinds)
		rc = outline_append(t, s, &how, out) || devices_append(t, s, out) ? -1 : 0;
	free(tiers);
	free(kinds);
	return rc;
}

/* Each begins with a blank, which is removed. */
static char *string_make(int (*write)(const struct tree *, const struct tree_extent *, struct buf *),
			 const struct tree *t, const struct tree_extent *s)
{
	struct buf out = {0};
	char *text = write(t, s, &out) == 0 && out.len ? strdup(out.data + 1) : NULL;

	buf_free(&out);
	return text;
}

int strings_make(const struct tree *t, struct strings *out, struct err *e)
{
	struct tree_extent *s = tree_extents(t);
	struct strings made;

	if (!s)
		return err_set(e, "out of memory");
	if (!s[0].pus) {
		free(s);
		return err_set(e, "the topology has no PU");
	}
	made = (struct strings){
		.cores = string_make(cells_append, t, s),
		.hierarchy = string_make(hierarchy_write, t, s),
		.detail = string_make(detail_write, t, s),
		.allocation = string_make(allocation_write, t, s),
		.ncores = s[0].cores,
		.npus = s[0].pus,
	};
	free(s);
	if (!made.cores || !made.hierarchy || !made.detail || !made.allocation) {
		strings_free(&made);
		return err_set(e, "out of memory");
	}
	*out = made;
	return 0;
}

void strings_free(struct strings *s)
{
	free(s->cores);
	free(s->hierarchy);
	free(s->detail);
	free(s->allocation);
	*s = (struct strings){0};
}
