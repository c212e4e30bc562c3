/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdlib.h>
#include <string.h>

/* hwloc 2 writes hwloc_obj_osdev_type_t as a number (hwloc.h). */
enum osdev { OSDEV_GPU = 1, OSDEV_NETWORK = 2, OSDEV_OPENFABRICS = 3, OSDEV_COPROC = 5, OSDEV_NONE = 99 };

enum kind { KIND_GPU, KIND_NIC, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = { "GPU", "NIC" };

struct card {
	enum kind kind;
	bool fabric;		/* a NIC with an OS device of type OpenFabrics */
	double speed;		/* of a NIC's link, GB/s */
	unsigned first, cores;
};

struct cards {
	struct card *list;
	size_t n;
};

/* PCI classes of compute devices: 3D controllers, displays without a screen, processing accelerators. */
static const char *const computing[] = { "0302", "0380", "1200" };
static const char *const displays[] = { "card", "controlD" };

static bool begins_with_any(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; text && i < n; i++)
		if (!strncmp(text, list[i], strlen(list[i])))
			return true;
	return false;
}
#define BEGINS_WITH_ANY(text, list) begins_with_any(text, list, sizeof(list) / sizeof((list)[0]))

static bool os_device_computes(const struct tree_object *o)
{
	unsigned long long type = tree_number(o, "osdev_type", OSDEV_NONE);

	return type == OSDEV_COPROC || (type == OSDEV_GPU && !BEGINS_WITH_ANY(tree_attr(o, "name"), displays));
}

/* Whether this PCI device has an OS device of the type. */
static bool has_os_device(const struct tree *t, const struct tree_extent *s, size_t pci, enum osdev type)
{
	for (size_t i = pci + 1; i < s[pci].next; i++)
		if (tree_object_is(t, i, "OSDev") && tree_number(&t->objects[i], "osdev_type", OSDEV_NONE) == type)
			return true;
	return false;
}

static bool is_gpu(const struct tree *t, const struct tree_extent *s, size_t pci)
{
	if (BEGINS_WITH_ANY(tree_attr(&t->objects[pci], "pci_type"), computing))
		return true;
	for (size_t i = pci + 1; i < s[pci].next; i++)
		if (tree_object_is(t, i, "OSDev") && os_device_computes(&t->objects[i]))
			return true;
	return false;
}

static bool card_read(const struct tree *t, const struct tree_extent *s, size_t pci, struct card *c)
{
	const struct tree_extent *near = &s[tree_extent_around(t, s, pci)];
	const char *class = tree_attr(&t->objects[pci], "pci_type"),
		   *speed = tree_attr(&t->objects[pci], "pci_link_speed");
	bool network = class && !strncmp(class, "02", 2) && has_os_device(t, s, pci, OSDEV_NETWORK);

	*c = (struct card){ .first = near->first, .cores = near->cores, .speed = speed ? strtod(speed, NULL) : 0 };
	if (is_gpu(t, s, pci)) {
		c->kind = KIND_GPU;
		return true;
	}
	c->kind = KIND_NIC;
	c->fabric = has_os_device(t, s, pci, OSDEV_OPENFABRICS);
	return c->fabric || network;
}

static int cards_find(const struct tree *t, const struct tree_extent *s, struct cards *all)
{
	if (!(all->list = malloc(t->n * sizeof(*all->list))))
		return -1;
	for (size_t i = 0; i < t->n; i++)
		if (tree_object_is(t, i, "PCIDev"))
			all->n += card_read(t, s, i, &all->list[all->n]);
	return 0;
}

static void drop_management(struct cards *all)
{
	bool fabric = false;
	double fastest = 0;
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct card *c = &all->list[i];

		fabric |= c->fabric;
		if (c->kind == KIND_NIC && c->speed > fastest)
			fastest = c->speed;
	}
	for (size_t i = 0; i < all->n; i++) {
		const struct card *c = &all->list[i];

		if (c->kind == KIND_GPU || (fabric ? c->fabric : c->speed >= fastest / 4))
			all->list[kept++] = *c;
	}
	all->n = kept;
}

static int by_kind_and_core(const void *a, const void *b)
{
	const struct card *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->cores < y->cores ? -1 : x->cores > y->cores;
}

int devices_append(const struct tree *t, const struct tree_extent *extents, struct buf *out)
{
	struct cards all = {0};

	if (cards_find(t, extents, &all))
		return -1;
	drop_management(&all);
	qsort(all.list, all.n, sizeof(*all.list), by_kind_and_core);
	for (size_t i = 0; i < all.n; i++) {
		const struct card *c = &all.list[i];

		buf_printf(out, "%s %s@%u", i ? "" : " +", kind_names[c->kind], c->first);
		if (c->cores > 1)
			buf_printf(out, "-%u", c->first + c->cores - 1);
	}
	free(all.list);
	return out->failed ? -1 : 0;
}
