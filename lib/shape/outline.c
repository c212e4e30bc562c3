/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdlib.h>


#define MAX_DEPTH 64

/* The objects from the root down to the current one. */
struct nest {
	struct nest *home;		/* the one whose text contains this one's children: itself, or one above */
	struct nest *core;		/* the core that it is or belongs to */
	bool bare;			/* no child in the tree yet */
	struct buf memories;
	struct runs children;
};

struct writer {
	const struct tree *tree;
	const struct tree_extent *extents;
	const struct outline *how;
	struct nest nests[MAX_DEPTH];
	struct buf body;
};

static bool is_written(const struct writer *w, size_t object, const struct nest *up)
{
	if (!up || w->how->all)
		return true;
	return w->tree->objects[object].type->level && (!up->core || tree_object_is(w->tree, object, "PU"));
}

static void nest_enter(struct writer *w, size_t object, struct nest *t)
{
	struct nest *up = t == w->nests ? NULL : t - 1;

	t->home = is_written(w, object, up) ? t : up->home;
	t->core = up && up->core ? up->core : tree_object_is(w->tree, object, "Core") ? t : NULL;
	t->bare = true;
	t->memories.len = 0;
}

static void memory_add(struct writer *w, size_t numa, struct nest *t)
{
	struct buf *out;

	if (t->bare && !t->core)
		t->home = t;
	out = t->core ? &t->core->memories : &t->home->memories;
	w->body.len = 0;
	if (w->how->memory)
		w->how->memory(w->tree, numa, &w->body);
	if (w->how->tiers && w->how->tiers[numa])
		buf_printf(&w->body, "%stier=%s", w->body.len ? " " : "", tier_name(w->how->tiers[numa]));
	if (w->body.len)
		buf_printf(out, " [NUMANode(%s)]", w->body.data);
	else
		buf_puts(out, " [NUMANode]");
}

static void size_write(const struct tree_object *o, struct buf *out)
{
	unsigned long long size = tree_number(o, "cache_size", 0);

	if (size)
		buf_printf(out, "(size=%llu)", size);
}

static void kind_write(const struct writer *w, size_t object, struct buf *out)
{
	if (w->how->kinds && w->how->kinds[object])
		buf_printf(out, "(kind=%u)", w->how->kinds[object]);
}

static void pu_leave(struct writer *w, size_t object, struct nest *t, struct nest *home)
{
	w->body.len = 0;
	if (!t->core) {
		kind_write(w, object, &w->body);
		buf_add(&w->body, t->memories.data, t->memories.len);
		buf_puts(&w->body, " PU:1");
	}
	runs_add(&home->children, t->core ? "PU" : "Core", &w->body);
}

static void object_leave(struct writer *w, size_t object, struct nest *t, struct nest *home)
{
	const struct tree_object *o = &w->tree->objects[object];

	w->body.len = 0;
	if (w->how->all)
		size_write(o, &w->body);
	kind_write(w, object, &w->body);
	buf_add(&w->body, t->memories.data, t->memories.len);
	runs_append(&t->children, &w->body);
	runs_add(&home->children, o->type->name, &w->body);
}

static void nest_leave(struct writer *w, size_t object, struct nest *t)
{
	struct nest *home = t[-1].home;

	if (t->home != t)
		return;
	if (tree_object_is(w->tree, object, "PU"))
		pu_leave(w, object, t, home);
	else if (t->children.type)
		object_leave(w, object, t, home);
	else
		buf_add(&home->memories, t->memories.data, t->memories.len);
}

static void object_append(struct writer *w, size_t object, struct nest *t)
{
	nest_enter(w, object, t);
	for (size_t i = object + 1; i < w->extents[object].next;) {
		enum xml_family family = w->tree->objects[i].type->family;

		if (family == FAMILY_TREE) {
			t->bare = false;
			object_append(w, i, t + 1);
		} else if (tree_object_is(w->tree, i, "NUMANode")) {
			memory_add(w, i, t);
		}
		/* NUMA nodes may be below memory-side caches. */
		i = family == FAMILY_MEMORY ? i + 1 : w->extents[i].next;
	}
	if (t != w->nests)
		nest_leave(w, object, t);
}

int outline_append(const struct tree *t, const struct tree_extent *extents, const struct outline *how, struct buf *out)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	w->tree = t;
	w->extents = extents;
	w->how = how;
	object_append(w, 0, w->nests);
	buf_add(out, w->nests[0].memories.data, w->nests[0].memories.len);
	runs_append(&w->nests[0].children, out);
	out->failed |= w->body.failed;
	buf_free(&w->body);
	for (size_t i = 0; i < MAX_DEPTH; i++) {
		out->failed |= w->nests[i].memories.failed;
		buf_free(&w->nests[i].memories);
		runs_free(&w->nests[i].children);
	}
	free(w);
	return out->failed ? -1 : 0;
}
