/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings.h"

#include <hwloc/bitmap.h>

#include "base/order.h"
#include "shape/core_kind.h"
#include "shape/gpu_number.h"
#include "shape/tier.h"

/* --- kinds of cores --- */

struct kind_list {
	struct core_kind_facts facts[CORE_KINDS_HWLOC];
	hwloc_bitmap_t pus[CORE_KINDS_HWLOC];
	unsigned char kinds[CORE_KINDS_HWLOC];
	unsigned n;
	bool failed;
};

/* A core is of the kind of its first PU. */
static bool cores_mark(const struct tree *t, const struct tree_extent *s, const struct kind_list *l,
		       unsigned char *kinds)
{
	for (size_t i = t->n; i-- > 0;) {
		long pu = t->objects[i].os_index;
		unsigned kind = 0;	/* hwloc's number */

		if (!tree_object_is(t, i, "PU"))
			continue;
		while (pu >= 0 && kind < l->n && !hwloc_bitmap_isset(l->pus[kind], pu))
			kind++;
		if (pu < 0 || kind == l->n)
			return false;
		kinds[s[i].core] = l->kinds[kind];
	}
	return true;
}

unsigned char *strings_core_kinds(const struct tree *t, const struct tree_extent *extents)
{
	struct kind_list *l = calloc(1, sizeof(*l));
	unsigned char *kinds = calloc(t->n, sizeof(*kinds));

	if (l) {
		/* The infos of a kind follow it. */
		bool inside = false;

		for (size_t i = 0; i < t->nextras && !l->failed; i++) {
			const struct tree_extra *x = &t->extras[i];
			const char *efficiency = tree_extra_attr(x, "forced_efficiency");

			if (inside && x->element->tag == TAG_INFO) {
				core_kind_read(&l->facts[l->n - 1], tree_extra_attr(x, "name"),
					       tree_extra_attr(x, "value"));
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

/* --- tiers of memory --- */

struct memory_node {
	size_t object;
	unsigned first, cores;	/* local to it */
	struct tier_facts facts;
};

static int by_object(const void *object, const void *node)
{
	return COMPARE(*(const long *) object, (long) ((const struct memory_node *) node)->object);
}

unsigned char *strings_tiers(const struct tree *t, const struct tree_extent *extents)
{
	struct memory_node *nodes = malloc(t->n * sizeof(*nodes));
	unsigned char *tiers = calloc(t->n, sizeof(*tiers));
	size_t n = 0;

	for (size_t i = 0; nodes && i < t->n; i++) {
		const struct tree_extent *near;

		if (!tree_object_is(t, i, "NUMANode"))
			continue;
		near = &extents[tree_extent_around(t, extents, i)];
		nodes[n++] = (struct memory_node){ .object = i, .first = near->first, .cores = near->cores,
			.facts = { .subtype = tree_attr(&t->objects[i], "subtype"),
				   .dax = tree_info(&t->objects[i], "DAXType") } };
	}
	/* The values of an attribute follow it. */
	bool inside = false;

	for (size_t i = 0; i < t->nextras; i++) {
		const struct tree_extra *x = &t->extras[i];
		const char *name = tree_extra_attr(x, "name"), *to, *value;
		struct memory_node *node;
		long object;

		if (x->element->tag != TAG_MEMATTR_VALUE) {
			inside = x->element->tag == TAG_MEMATTR && name && !strcmp(name, "Bandwidth");
			continue;
		}
		to = tree_extra_attr(x, "target_obj_gp_index");
		value = tree_extra_attr(x, "value");
		object = tree_by_gp(t, to ? strtoull(to, NULL, 10) : 0);
		node = inside ? bsearch(&object, nodes, n, sizeof(*nodes), by_object) : NULL;
		if (node && value && node->facts.bandwidth < strtoull(value, NULL, 10))
			node->facts.bandwidth = strtoull(value, NULL, 10);
	}
	for (struct memory_node *a = nodes; a < nodes + n; a++)
		for (const struct memory_node *b = nodes; b < nodes + n; b++) {
			unsigned long long *other = &a->facts.other, value = b->facts.bandwidth;

			if (a != b && value && tier_is_plain(&b->facts) && (!*other || value < *other) &&
			    a->first < b->first + b->cores && b->first < a->first + a->cores)
				*other = value;
		}
	for (size_t i = 0; tiers && i < n; i++)
		tiers[nodes[i].object] = tier_of(&nodes[i].facts);
	if (!nodes) {
		free(tiers);
		tiers = NULL;
	}
	free(nodes);
	return tiers;
}

/* --- devices --- */

/* hwloc 2 writes hwloc_obj_osdev_type_t as a number (hwloc.h). */
enum osdev { OSDEV_GPU = 1, OSDEV_NETWORK = 2, OSDEV_OPENFABRICS = 3, OSDEV_COPROC = 5, OSDEV_NONE = 31 };
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

/*
 * The PCI function as a GPU may be one: its class and maker, its place on the bus, what its OS devices say. types: a
 * bit of each of their types.
 */
static struct gpu_card gpu_read(const struct tree *t, const struct tree_extent *s, size_t pci, unsigned *types)
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

		if (!tree_object_is(t, i, "OSDev"))
			continue;
		gpu_card_add(&c, type == OSDEV_GPU, type == OSDEV_COPROC, tree_attr(&t->objects[i], "name"));
		*types |= type < OSDEV_NONE ? 1u << type : 0;
	}
	return c;
}

static bool card_read(const struct tree *t, const struct tree_extent *s, size_t pci, struct card *c)
{
	const struct tree_extent *near = &s[tree_extent_around(t, s, pci)];
	const char *speed = tree_attr(&t->objects[pci], "pci_link_speed");
	unsigned types = 0;

	*c = (struct card){ .first = near->first, .cores = near->cores, .speed = speed ? strtod(speed, NULL) : 0,
			    .gpu = gpu_read(t, s, pci, &types) };
	if (gpu_card_is_gpu(&c->gpu)) {
		c->kind = KIND_GPU;
		return true;
	}
	c->kind = KIND_NIC;
	c->fabric = types >> OSDEV_OPENFABRICS & 1;
	return c->fabric || (c->gpu.class >> 8 == PCI_NETWORK && types >> OSDEV_NETWORK & 1);
}

/* GPUs without a number, -1, come after the others. */
ORDER(by_kind_number_and_core, struct card, COMPARE(x->kind, y->kind) ?:
      (x->kind == KIND_GPU ? COMPARE((unsigned) x->gpu.number, (unsigned) y->gpu.number) : 0) ?:
      COMPARE(x->first, y->first) ?: COMPARE(x->cores, y->cores))

int strings_devices(const struct tree *t, const struct tree_extent *extents, struct buf *out)
{
	struct card *all = malloc(t->n * sizeof(*all));
	struct gpu_card *gpus = malloc(t->n * sizeof(*gpus));
	size_t n = 0, kept = 0, ngpus = 0;
	bool fabric = false;
	double fastest = 0;

	for (size_t i = 0; all && i < t->n; i++)
		if (tree_object_is(t, i, "PCIDev") && card_read(t, extents, i, &all[n])) {
			const struct card *c = &all[n++];

			fabric |= c->fabric;
			if (c->kind == KIND_NIC && c->speed > fastest)
				fastest = c->speed;
		}
	/* Without what is for management. */
	for (size_t i = 0; gpus && i < n; i++) {
		const struct card *c = &all[i];

		if (c->kind == KIND_GPU)
			gpus[ngpus++] = c->gpu;
		if (c->kind == KIND_GPU || (fabric ? c->fabric : c->speed >= fastest / 4))
			all[kept++] = *c;
	}
	gpu_cards_number(gpus, ngpus);
	for (size_t i = kept; i-- > 0;)
		if (all[i].kind == KIND_GPU)
			all[i].gpu = gpus[--ngpus];
	if (all)
		qsort(all, kept, sizeof(*all), by_kind_number_and_core);
	for (size_t i = 0; i < kept; i++) {
		const struct card *c = &all[i];

		buf_printf(out, "%s %s", i ? "" : " +", kind_names[c->kind]);
		if (c->kind == KIND_GPU && c->gpu.number >= 0)
			buf_printf(out, "%d", c->gpu.number);
		buf_printf(out, "@%u", c->first);
		if (c->cores > 1)
			buf_printf(out, "-%u", c->first + c->cores - 1);
	}
	free(gpus);
	free(all);
	return all && gpus && !out->failed ? 0 : -1;
}
