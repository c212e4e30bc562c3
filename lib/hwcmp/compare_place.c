/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "delta/field_layout.h"
#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Is the object of one of these types? */
#define is_one(t, object, ...) \
	is_one_of(t, object, (const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ })))

static bool is_one_of(const struct tree *t, size_t object, const char *const *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (compare_tree_is(t, object, types[i]))
			return true;
	return false;
}

/* --- where matched objects are --- */

/* In words: the packages, unless both are in the same one. */
static void move_report(struct comparison *c, size_t object, long a, long b)
{
	const struct compare_side *s = c->m.side;
	int x = s[0].package[a], y = s[1].package[b];
	struct buf from = {0}, to = {0}, tail = {0};
	bool other = x && y && s[0].partner[x] != y;

	tree_label(s[0].t, other ? x : a, &from);
	tree_label(s[1].t, other ? y : b, &to);
	if (from.failed || to.failed)
		c->r.failed = true;
	else if (strcmp(from.data, to.data)) {
		buf_printf(&tail, ": moved from %s to %s", from.data, to.data);
		comparison_remark(c, s[0].t, object, SEVERITY_WIRING, CHANGE_CHANGED, "locality", from.data, to.data,
				  &tail);
	}
	buf_free(&from);
	buf_free(&to);
}

/* The nearest ancestor in the tree that both trees have. */
static long place_of(const struct compare_side *s, size_t object)
{
	long at = s->t->objects[object].parent;

	while (at > 0 && (s->t->objects[at].type->family != FAMILY_TREE || s->partner[at] < 0))
		at = s->t->objects[at].parent;
	return at;
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
	else if (t->objects[a].type->family != FAMILY_TREE) {
		const struct compare_side *s = c->m.side;
		bool pci = compare_tree_is(s[0].t, a, "PCIDev");
		size_t known = pci ? compare_device_known_by(s[0].t, a) : a;
		int pa = s[0].t->objects[a].parent, pb = s[1].t->objects[b].parent;
		const char *bus = tree_attr(&s[0].t->objects[a], "pci_busid");
		const char *now = tree_attr(&s[1].t->objects[b], "pci_busid");
		struct buf tail = {0};
		long x, y;

		/* Objects on a device move with it, and a bridge is where its devices are. */
		if (compare_tree_is(s[0].t, a, "Bridge") ||
		    (!pci && pa > 0 && s[0].partner[pa] == pb && s[0].t->objects[pa].type->family != FAMILY_TREE))
			return;
		x = place_of(&s[0], a);
		y = place_of(&s[1], b);
		if (s[0].partner[x] != y) {
			move_report(c, known, x, y);
		} else if (pci && bus && now && strcmp(bus, now)) {
			compare_value_tail("bus", bus, now, &tail);
			comparison_remark(c, s[0].t, known, SEVERITY_WIRING, CHANGE_CHANGED, "bus", bus, now, &tail);
		} else if (pci && s[0].partner[pa] >= 0 && s[0].partner[pa] != pb) {
			move_report(c, known, pa, pb);	/* behind another bridge */
		}
	}
}

/* --- objects that are gone or new --- */

/* hwloc_obj_osdev_type_t */
enum { HWLOC_BLOCK, HWLOC_GPU, HWLOC_NETWORK, HWLOC_OPENFABRICS, HWLOC_DMA, HWLOC_COPROC };

/* By object of a side. */
struct marks {
	bool *covered;		/* reported with its parent */
	bool *emptied;		/* contains an object that came or went, too */
	bool *gpu;		/* a GPU in it is matched */
};

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

static bool is_gpu(const struct tree_object *o)
{
	unsigned long long type = tree_number(o, "osdev_type", 0);

	return type == HWLOC_GPU || type == HWLOC_COPROC;
}

static enum severity loss_severity(const struct compare_side *s, size_t object, const struct marks *k)
{
	/*
	 * The base classes of PCI (PCI Code and ID Assignment, 1): storage, network, display, processors, accelerators.
	 */
	static const char *const classes[] = { "01", "02", "03", "0b", "12" };
	const struct tree_object *o = &s->t->objects[object];
	const char *type = tree_attr(o, "pci_type");
	bool is_worth = false;

	for (size_t i = 0; type && i < COUNT(classes); i++)
		is_worth |= !strncmp(type, classes[i], 2);
	if (compare_tree_is(s->t, object, "PCIDev") && compare_device_known_by(s->t, object) == object && !is_worth)
		return SEVERITY_WIRING;
	/* An OS device alone: its driver is missing or, of one of a GPU's names, the library that provides it. */
	if (compare_tree_is(s->t, object, "OSDev"))
		return is_gpu(o) && k->gpu[o->parent] ? SEVERITY_WIRING : SEVERITY_CAPACITY;
	if (compare_tree_is(s->t, object, "Misc") && strcmp(tree_kind(o), "memory module"))
		return SEVERITY_COSMETIC;
	return is_one(s->t, object, "Group", "Bridge") ? SEVERITY_WIRING : SEVERITY_CAPACITY;
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

		/* " gone (Tesla T4, opencl0d1, nvml1)" */
		const char *gap = " (", *model = tree_info(&s->t->objects[known], "GPUModel") ?:
			tree_info(&s->t->objects[known], "Model") ?: tree_info(o, "PCIDevice");
		size_t end = compare_tree_end(s->t, object);

		buf_printf(&tail, " %s", verb);
		if (model) {
			buf_printf(&tail, "%s%s", gap, model);
			gap = ", ";
		}
		for (size_t i = object + 1; i < end; i++) {
			if (i == known || !compare_tree_is(s->t, i, "OSDev"))
				continue;
			buf_puts(&tail, gap);
			tree_label(s->t, i, &tail);
			gap = ", ";
		}
		if (*gap == ',')
			buf_puts(&tail, ")");
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
	/* Parents are processed before their children. */
	for (size_t i = 1; i < s->t->n; i++) {
		int parent = s->t->objects[i].parent;

		k.covered[i] = k.covered[parent] ||
			(s->partner[parent] < 0 &&
			 is_one(s->t, parent, "Package", "Core", "PCIDev", "OSDev", "NUMANode", "Misc"));
	}
	for (size_t i = s->t->n; i-- > 1;) {
		const struct tree_object *o = &s->t->objects[i];

		if (s->partner[i] >= 0)
			k.gpu[o->parent] |= compare_tree_is(s->t, i, "OSDev") && is_gpu(o);
		else if (o->type->family != FAMILY_TREE)
			k.emptied[o->parent] = true;
	}
	for (size_t i = 1; i < s->t->n; i++) {
		/* Gone with the cores, devices or memory in it, which are reported. */
		bool unsaid = is_one(s->t, i, "Bridge", "MemCache") ? k.emptied[i] :
			!is_one(s->t, i, "Package", "Core", "PU") && s->t->objects[i].type->family == FAMILY_TREE &&
			s->vacant[i];

		if (s->partner[i] < 0 && !k.covered[i] && !unsaid)
			presence_remark(c, s, i, &k, gone);
	}
	free(all);
}
