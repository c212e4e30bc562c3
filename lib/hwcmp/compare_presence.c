/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "hwcmp/compare_parts.h"
#include "delta/field_layout.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* hwloc_obj_osdev_type_t */
enum { HWLOC_BLOCK, HWLOC_GPU, HWLOC_NETWORK, HWLOC_OPENFABRICS, HWLOC_DMA, HWLOC_COPROC };

/* By object of a side. */
struct marks {
	bool *covered;		/* reported with its parent */
	bool *emptied;		/* contains an object that came or went, too */
	bool *gpu;		/* a GPU in it is matched */
};

static bool takes_along(const struct tree *t, size_t object)
{
	static const char *const types[] = { "Package", "Core", "PCIDev", "OSDev", "NUMANode", "Misc" };

	for (size_t i = 0; i < COUNT(types); i++)
		if (compare_tree_is(t, object, types[i]))
			return true;
	return false;
}

/* Objects that came or went with their parent are reported with it. Parents are processed before their children. */
static void covered_find(const struct compare_side *s, struct marks *k)
{
	for (size_t i = 1; i < s->t->n; i++) {
		int parent = s->t->objects[i].parent;

		k->covered[i] = k->covered[parent] || (s->partner[parent] < 0 && takes_along(s->t, parent));
	}
}

/* The base classes of PCI (PCI Code and ID Assignment, 1): storage, network, display, processors, accelerators. */
static bool is_worth(const struct tree_object *o)
{
	static const char *const classes[] = { "01", "02", "03", "0b", "12" };
	const char *type = tree_attr(o, "pci_type");

	for (size_t i = 0; type && i < COUNT(classes); i++)
		if (!strncmp(type, classes[i], 2))
			return true;
	return false;
}

/*
 * The order of preference for a device's name: lower is better. OpenCL is an additional name of devices that have
 * another.
 */
static unsigned osdev_rank(const struct tree_object *o)
{
	static const unsigned ranks[] = {
		[HWLOC_OPENFABRICS] = 0, [HWLOC_COPROC] = 1, [HWLOC_GPU] = 2,
		[HWLOC_BLOCK] = 3, [HWLOC_NETWORK] = 4, [HWLOC_DMA] = 5,
	};
	unsigned long long type = tree_number(o, "osdev_type", COUNT(ranks));

	const char *subtype = tree_attr(o, "subtype");

	return 2 * (type < COUNT(ranks) ? ranks[type] : COUNT(ranks)) + (!subtype || !strcmp(subtype, "OpenCL"));
}

size_t compare_device_known_by(const struct tree *t, size_t pci)
{
	size_t best = pci, end = compare_tree_end(t, pci);

	for (size_t i = pci + 1; i < end; i++)
		if (compare_tree_is(t, i, "OSDev") &&
		    (best == pci || osdev_rank(&t->objects[i]) < osdev_rank(&t->objects[best])))
			best = i;
	return best;
}

static const char *model_of(const struct tree *t, size_t pci, size_t known)
{
	static const char *const names[] = { "GPUModel", "Model" };
	const char *model = NULL;

	for (size_t i = 0; i < COUNT(names) && !model; i++)
		model = tree_info(&t->objects[known], names[i]);
	return model ? model : tree_info(&t->objects[pci], "PCIDevice");
}

/* " gone (Tesla T4, opencl0d1, nvml1)" */
static void pci_tail(const struct tree *t, size_t pci, size_t known, const char *verb, struct buf *tail)
{
	const char *model = model_of(t, pci, known), *gap = " (";
	size_t end = compare_tree_end(t, pci);

	buf_printf(tail, " %s", verb);
	if (model) {
		buf_printf(tail, "%s%s", gap, model);
		gap = ", ";
	}
	for (size_t i = pci + 1; i < end; i++) {
		if (i == known || !compare_tree_is(t, i, "OSDev"))
			continue;
		buf_puts(tail, gap);
		tree_label(t, i, tail);
		gap = ", ";
	}
	if (*gap == ',')
		buf_puts(tail, ")");
}

static bool is_gpu(const struct tree_object *o)
{
	unsigned long long type = tree_number(o, "osdev_type", 0);

	return type == HWLOC_GPU || type == HWLOC_COPROC;
}

/* Marks devices with a GPU that is still known by some name, and PCI devices below which something went. */
static void marks_find(const struct compare_side *s, struct marks *k)
{
	for (size_t i = s->t->n; i-- > 1;) {
		const struct tree_object *o = &s->t->objects[i];

		if (s->partner[i] >= 0)
			k->gpu[o->parent] |= compare_tree_is(s->t, i, "OSDev") && is_gpu(o);
		else if (o->type->family != FAMILY_TREE)
			k->emptied[o->parent] = true;
	}
}

/* An OS device alone: its driver is missing or, for one of several names of a GPU, the library that provides it. */
static enum severity osdev_severity(const struct compare_side *s, size_t object, const struct marks *k)
{
	const struct tree_object *o = &s->t->objects[object];

	return is_gpu(o) && k->gpu[o->parent] ? SEVERITY_WIRING : SEVERITY_CAPACITY;
}

static enum severity loss_severity(const struct compare_side *s, size_t object, const struct marks *k)
{
	static const struct { const char *type; enum severity severity; } others[] = {
		{ "Group", SEVERITY_WIRING }, { "Bridge", SEVERITY_WIRING }, { "Misc", SEVERITY_COSMETIC },
	};

	if (compare_tree_is(s->t, object, "PCIDev") && compare_device_known_by(s->t, object) == object &&
	    !is_worth(&s->t->objects[object]))
		return SEVERITY_WIRING;
	if (compare_tree_is(s->t, object, "OSDev"))
		return osdev_severity(s, object, k);
	if (!strcmp(tree_kind(&s->t->objects[object]), "memory module"))
		return SEVERITY_CAPACITY;
	for (size_t i = 0; i < COUNT(others); i++)
		if (compare_tree_is(s->t, object, others[i].type))
			return others[i].severity;
	return SEVERITY_CAPACITY;
}

/* Gone with the cores, devices or memory in it, which are reported. */
static bool goes_unsaid(const struct compare_side *s, size_t object, const struct marks *k)
{
	static const char *const reported[] = { "Package", "Core", "PU" };

	if (compare_tree_is(s->t, object, "Bridge") || compare_tree_is(s->t, object, "MemCache"))
		return k->emptied[object];
	for (size_t i = 0; i < COUNT(reported); i++)
		if (compare_tree_is(s->t, object, reported[i]))
			return false;
	return s->t->objects[object].type->family == FAMILY_TREE && s->vacant[object];
}

static void presence_remark(struct comparison *c, const struct compare_side *s, size_t object, const struct marks *k,
			    bool gone)
{
	const struct tree_object *o = &s->t->objects[object];
	bool offline = o->type->family == FAMILY_TREE && s->offline[object];
	const char *verb = gone ? offline ? "offline" : "gone" : offline ? "online" : "new";
	unsigned long long memory = tree_number(o, "local_memory", 0);
	enum severity severity = loss_severity(s, object, k);
	struct buf tail = {0};
	char size[SIZE_TEXT];

	compare_size_format(field_memory_nominal(memory), size);
	if (compare_tree_is(s->t, object, "PCIDev")) {
		size_t known = compare_device_known_by(s->t, object);

		pci_tail(s->t, object, known, verb, &tail);
		object = known;
	} else if (compare_tree_is(s->t, object, "OSDev") && compare_tree_is(s->t, o->parent, "PCIDev")) {
		buf_printf(&tail, " %s (", verb);
		tree_label(s->t, o->parent, &tail);
		buf_printf(&tail, gone ? " remains)" : " was present before)");
	} else {
		buf_printf(&tail, memory ? " %s (%s)" : " %s", verb, size);
	}
	comparison_remark(c, s->t, object, severity, gone ? CHANGE_GONE : CHANGE_EXTRA, "", "", "", &tail);
}

void compare_presence(struct comparison *c, bool gone)
{
	const struct compare_side *s = &c->m.side[!gone];
	bool *all = calloc(s->t->n, 3 * sizeof(*all));
	struct marks k = { all, all + s->t->n, all + 2 * s->t->n };

	if (!all) {
		c->r.failed = true;
		return;
	}
	covered_find(s, &k);
	marks_find(s, &k);
	for (size_t i = 1; i < s->t->n; i++)
		if (s->partner[i] < 0 && !k.covered[i] && !goes_unsaid(s, i, &k))
			presence_remark(c, s, i, &k, gone);
	free(all);
}
