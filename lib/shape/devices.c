/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/gpu_number.h"
#include "shape/strings_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* hwloc 2 writes hwloc_obj_osdev_type_t as a number (hwloc.h). */
enum osdev { OSDEV_GPU = 1, OSDEV_NETWORK = 2, OSDEV_OPENFABRICS = 3, OSDEV_COPROC = 5, OSDEV_NONE = 99 };
#define PCI_NETWORK 0x02

enum kind { KIND_GPU, KIND_NIC, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = { "GPU", "NIC" };

struct card {
	enum kind kind;
	struct gpu_card gpu;	/* of a GPU */
	bool fabric;		/* a NIC with an OS device of type OpenFabrics */
	double speed;		/* of a NIC's link, GB/s */
	unsigned first, cores;
};

struct cards {
	struct card *list;
	size_t n;
};

/* The PCI function as a GPU may be one: its class and maker, its place on the bus, what its OS devices say. */
static struct gpu_card gpu_read(const struct tree *t, const struct tree_extent *s, size_t pci)
{
	const char *class = tree_attr(&t->objects[pci], "pci_type"), *at = tree_attr(&t->objects[pci], "pci_busid");
	unsigned domain, bus, device, function;
	struct gpu_card c = { .driver = -1 };

	if (class)
		sscanf(class, "%x [%x:", &c.class, &c.vendor);
	if (at && sscanf(at, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
		c.bus = (unsigned long long) domain << 24 | bus << 16 | device << 8 | function;
	for (size_t i = pci + 1; i < s[pci].next; i++) {
		unsigned long long type = tree_number(&t->objects[i], "osdev_type", OSDEV_NONE);

		if (tree_object_is(t, i, "OSDev"))
			gpu_card_add(&c, type == OSDEV_GPU, type == OSDEV_COPROC, tree_attr(&t->objects[i], "name"));
	}
	return c;
}

/* Whether this PCI device has an OS device of the type. */
static bool has_os_device(const struct tree *t, const struct tree_extent *s, size_t pci, enum osdev type)
{
	for (size_t i = pci + 1; i < s[pci].next; i++)
		if (tree_object_is(t, i, "OSDev") && tree_number(&t->objects[i], "osdev_type", OSDEV_NONE) == type)
			return true;
	return false;
}

static bool card_read(const struct tree *t, const struct tree_extent *s, size_t pci, struct card *c)
{
	const struct tree_extent *near = &s[tree_extent_around(t, s, pci)];
	const char *speed = tree_attr(&t->objects[pci], "pci_link_speed");
	bool network;

	*c = (struct card){ .first = near->first, .cores = near->cores, .speed = speed ? strtod(speed, NULL) : 0,
			    .gpu = gpu_read(t, s, pci) };
	if (gpu_card_is_gpu(&c->gpu)) {
		c->kind = KIND_GPU;
		return true;
	}
	c->kind = KIND_NIC;
	c->fabric = has_os_device(t, s, pci, OSDEV_OPENFABRICS);
	network = c->gpu.class >> 8 == PCI_NETWORK && has_os_device(t, s, pci, OSDEV_NETWORK);
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

static int by_unsigned(unsigned x, unsigned y)
{
	return x < y ? -1 : x > y;
}

/* GPUs without a number, -1, come after the others. */
static int by_kind_number_and_core(const void *a, const void *b)
{
	const struct card *x = a, *y = b;
	int c = by_unsigned(x->kind, y->kind);

	c = c || x->kind != KIND_GPU ? c : by_unsigned(x->gpu.number, y->gpu.number);
	c = c ? c : by_unsigned(x->first, y->first);
	return c ? c : by_unsigned(x->cores, y->cores);
}

static int gpus_number(struct cards *all)
{
	struct gpu_card *gpus = malloc((all->n + 1) * sizeof(*gpus));
	size_t n = 0, at = 0;

	if (!gpus)
		return -1;
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].kind == KIND_GPU)
			gpus[n++] = all->list[i].gpu;
	gpu_cards_number(gpus, n);
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].kind == KIND_GPU)
			all->list[i].gpu = gpus[at++];
	free(gpus);
	return 0;
}

int devices_append(const struct tree *t, const struct tree_extent *extents, struct buf *out)
{
	struct cards all = {0};

	if (cards_find(t, extents, &all))
		return -1;
	drop_management(&all);
	if (gpus_number(&all)) {
		free(all.list);
		return -1;
	}
	qsort(all.list, all.n, sizeof(*all.list), by_kind_number_and_core);
	for (size_t i = 0; i < all.n; i++) {
		const struct card *c = &all.list[i];

		buf_printf(out, "%s %s", i ? "" : " +", kind_names[c->kind]);
		if (c->kind == KIND_GPU && c->gpu.number >= 0)
			buf_printf(out, "%d", c->gpu.number);
		buf_printf(out, "@%u", c->first);
		if (c->cores > 1)
			buf_printf(out, "-%u", c->first + c->cores - 1);
	}
	free(all.list);
	return out->failed ? -1 : 0;
}
