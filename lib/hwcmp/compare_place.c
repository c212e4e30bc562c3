/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The place in words: its package, unless both are in the same one. */
static void places_write(struct comparison *c, long a, long b, struct buf *from, struct buf *to)
{
	const struct compare_side *s = c->m.side;
	int x = s[0].package[a], y = s[1].package[b];

	if (x && y && s[0].partner[x] != y) {
		a = x;
		b = y;
	}
	tree_label(s[0].t, a, from);
	tree_label(s[1].t, b, to);
}

static void move_report(struct comparison *c, size_t object, long a, long b)
{
	struct buf from = {0}, to = {0}, tail = {0};

	places_write(c, a, b, &from, &to);
	if (from.failed || to.failed)
		c->r.failed = true;
	else if (strcmp(from.data, to.data)) {
		buf_printf(&tail, ": moved from %s to %s", from.data, to.data);
		comparison_remark(c, c->m.side[0].t, object, SEVERITY_WIRING, CHANGE_CHANGED, "locality", from.data,
				  to.data, &tail);
	}
	buf_free(&from);
	buf_free(&to);
}

/* Its bus, or the bridge before it, if it is still in the same place. */
static void compare_bus(struct comparison *c, size_t a, size_t b, size_t known)
{
	const struct compare_side *s = c->m.side;
	const char *x = tree_attr(&s[0].t->objects[a], "pci_busid"), *y = tree_attr(&s[1].t->objects[b], "pci_busid");
	int pa = s[0].t->objects[a].parent, pb = s[1].t->objects[b].parent;
	struct buf tail = {0};

	if (x && y && strcmp(x, y)) {
		compare_value_tail("bus", x, y, &tail);
		comparison_remark(c, s[0].t, known, SEVERITY_WIRING, CHANGE_CHANGED, "bus", x, y, &tail);
	} else if (s[0].partner[pa] >= 0 && s[0].partner[pa] != pb) {
		move_report(c, known, pa, pb);
	}
}

/* The nearest ancestor in the tree that both trees have. */
static long place_of(const struct compare_side *s, size_t object)
{
	long at = s->t->objects[object].parent;

	while (at > 0 && (s->t->objects[at].type->family != FAMILY_TREE || s->partner[at] < 0))
		at = s->t->objects[at].parent;
	return at;
}

/* Objects on a device move with it, and a bridge is where its devices are. */
static bool goes_along(const struct compare_match *m, size_t a, size_t b)
{
	int parent = m->side[0].t->objects[a].parent, other = m->side[1].t->objects[b].parent;

	if (compare_tree_is(m->side[0].t, a, "Bridge"))
		return true;
	return !compare_tree_is(m->side[0].t, a, "PCIDev") && parent > 0 && m->side[0].partner[parent] == other &&
	       m->side[0].t->objects[parent].type->family != FAMILY_TREE;
}

static void compare_locality(struct comparison *c, size_t a, size_t b)
{
	const struct compare_side *s = c->m.side;
	bool pci = compare_tree_is(s[0].t, a, "PCIDev");
	size_t known = pci ? compare_device_known_by(s[0].t, a) : a;
	long x, y;

	if (goes_along(&c->m, a, b))
		return;
	x = place_of(&s[0], a);
	y = place_of(&s[1], b);
	if (s[0].partner[x] != y)
		move_report(c, known, x, y);
	else if (pci)
		compare_bus(c, a, b, known);
}

static void compare_numbering(struct comparison *c, size_t a, size_t b)
{
	const struct compare_side *s = c->m.side;
	const struct tree_object *x = &s[0].t->objects[a], *y = &s[1].t->objects[b];
	int package = s[0].package[a], other = s[0].partner[package];
	const char *from = tree_attr(&s[0].t->objects[package], "cpuset"), *to;
	struct buf tail = {0};

	if (c->reported[package] || other < 0 || (x->os_index == y->os_index && s[0].partner[x->parent] == y->parent))
		return;
	if (x->os_index == y->os_index &&
	    (s[0].partner[x->parent] < 0 || s[1].partner[y->parent] < 0 || compare_tree_is(s[0].t, a, "Core")))
		return;
	to = tree_attr(&s[1].t->objects[other], "cpuset");
	buf_puts(&tail, ": cores and PUs are numbered differently");
	comparison_remark(c, s[0].t, package, SEVERITY_WIRING, CHANGE_CHANGED, "numbering", from ? from : "",
			  to ? to : "", &tail);
	c->reported[package] = true;
}

/* A core may have moved between caches or dies within its package. */
static void compare_core_place(struct comparison *c, size_t a, size_t b)
{
	static const char *const around[] = { "L3Cache", "Die" };
	const struct compare_side *s = c->m.side;

	for (size_t i = 0; i < COUNT(around); i++) {
		long x = s[0].t->objects[a].parent, y = s[1].t->objects[b].parent;

		while (x > 0 && !compare_tree_is(s[0].t, x, around[i]))
			x = s[0].t->objects[x].parent;
		while (y > 0 && !compare_tree_is(s[1].t, y, around[i]))
			y = s[1].t->objects[y].parent;
		if (x > 0 && y > 0 && s[0].partner[x] >= 0 && s[1].partner[y] >= 0 && s[0].partner[x] != y) {
			move_report(c, a, x, y);
			return;
		}
	}
}

void compare_place(struct comparison *c, size_t a, size_t b)
{
	const struct tree *t = c->m.side[0].t;

	if (compare_tree_is(t, a, "PU") || compare_tree_is(t, a, "Core"))
		compare_numbering(c, a, b);
	if (compare_tree_is(t, a, "Core"))
		compare_core_place(c, a, b);
	else if (t->objects[a].type->family != FAMILY_TREE)
		compare_locality(c, a, b);
}
