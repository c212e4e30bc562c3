/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/memory_nodes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shape/tier.h"

struct node {
	hwloc_obj_t obj;
	struct tier_facts facts;
	enum tier tier;
};

struct node_list {
	hwloc_topology_t t;
	struct node *list;
	unsigned n;
};

/* The greatest bandwidth from any PUs: that from its own. */
static uint64_t own_bandwidth(hwloc_topology_t t, hwloc_obj_t numa)
{
	struct hwloc_location from[64];
	hwloc_uint64_t value[64], most = 0;
	unsigned n = 64;

	if (hwloc_memattr_get_initiators(t, HWLOC_MEMATTR_ID_BANDWIDTH, numa, 0, &n, from, value))
		return 0;
	for (unsigned i = 0; i < n && i < 64; i++)
		most = value[i] > most ? value[i] : most;
	return most;
}

static void tiers_find(struct node_list *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		struct tier_facts *f = &l->list[i].facts;

		for (unsigned k = 0; k < l->n; k++) {
			const struct tier_facts *o = &l->list[k].facts;

			if (k != i && o->bandwidth && tier_is_plain(o) && (!f->other || o->bandwidth < f->other) &&
			    hwloc_bitmap_intersects(l->list[i].obj->cpuset, l->list[k].obj->cpuset))
				f->other = o->bandwidth;
		}
		l->list[i].tier = tier_of(f);
	}
}

static int list_read(hwloc_topology_t t, struct node_list *out)
{
	int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);

	*out = (struct node_list){ .t = t, .n = n > 0 ? n : 0 };
	if (!(out->list = calloc(out->n + 1, sizeof(*out->list))))
		return -1;
	for (unsigned i = 0; i < out->n; i++) {
		struct node *node = &out->list[i];

		node->obj = hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, i);
		node->facts = (struct tier_facts){ .subtype = node->obj->subtype,
			.dax = hwloc_obj_get_info_by_name(node->obj, "DAXType"),
			.bandwidth = own_bandwidth(t, node->obj) };
	}
	tiers_find(out);
	return 0;
}

/* How well a node serves a PU: greater is better. */
struct merit {
	bool known;
	uint64_t value;
};

typedef struct merit merit_fn(hwloc_topology_t t, const struct node *node, hwloc_obj_t pu);

static struct merit any(hwloc_topology_t t, const struct node *node, hwloc_obj_t pu)
{
	(void) t, (void) node, (void) pu;
	return (struct merit){ true, 0 };
}

static struct merit capacity(hwloc_topology_t t, const struct node *node, hwloc_obj_t pu)
{
	(void) t, (void) pu;
	return (struct merit){ true, node->obj->attr->numanode.local_memory };
}

static struct merit attribute(hwloc_topology_t t, hwloc_memattr_id_t which, const struct node *node, hwloc_obj_t pu)
{
	struct hwloc_location from = { .type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = pu->cpuset };
	hwloc_uint64_t value;
	bool known = !hwloc_memattr_get_value(t, which, node->obj, &from, 0, &value);

	return (struct merit){ known, known ? value : 0 };
}

static struct merit bandwidth(hwloc_topology_t t, const struct node *node, hwloc_obj_t pu)
{
	return attribute(t, HWLOC_MEMATTR_ID_BANDWIDTH, node, pu);
}

static struct merit latency(hwloc_topology_t t, const struct node *node, hwloc_obj_t pu)
{
	struct merit m = attribute(t, HWLOC_MEMATTR_ID_LATENCY, node, pu);

	m.value = UINT64_MAX - m.value;
	return m;
}

#define TIER(t) (1u << (t))
#define NORMAL { any, (1u << TIER_COUNT) - 1, NULL }
#define ANY_BUT_GPU ((1u << TIER_COUNT) - 1 - TIER(TIER_GPU))

static const struct want {
	merit_fn *merit;
	unsigned tiers;
	const char *name;	/* NULL: that there is none is no error */
} wants[] = {
	[MEMORY_OFF] = NORMAL, [MEMORY_LOCAL] = NORMAL, [MEMORY_BIND] = NORMAL, [MEMORY_INTERLEAVE] = NORMAL,
	[MEMORY_HBM] = { any, TIER(TIER_HBM), "HBM" },
	[MEMORY_DRAM] = { any, TIER(TIER_DRAM), "DRAM" },
	[MEMORY_CAPACITY] = { capacity, ANY_BUT_GPU, "memory" },
	[MEMORY_BANDWIDTH] = { bandwidth, ANY_BUT_GPU, "memory" },
	[MEMORY_LATENCY] = { latency, ANY_BUT_GPU, "memory" },
};

/* A machine that states the memory of no NUMA node has some in each. */
static bool has_memory(const struct node_list *l, const struct node *node)
{
	return node->obj->attr->numanode.local_memory || !hwloc_get_root_obj(l->t)->total_memory;
}

static bool serves(const struct node_list *l, const struct want *w, const struct node *node, hwloc_obj_t pu)
{
	return w->tiers & TIER(node->tier) && has_memory(l, node) &&
	       hwloc_bitmap_isset(node->obj->cpuset, pu->os_index);
}

/* Less than 0: a is better; 0: both serve equally. */
static int compare(const struct node *a, struct merit am, const struct node *b, struct merit bm)
{
	int inner = hwloc_bitmap_weight(a->obj->cpuset) - hwloc_bitmap_weight(b->obj->cpuset);

	if (am.value != bm.value)
		return am.value > bm.value ? -1 : 1;
	return inner ? inner : (int) a->tier - (int) b->tier;
}

/* Adds a PU's best node, of several that serve equally all. Their number, or -1 if they cannot be compared. */
static int add_best(const struct node_list *l, const struct want *w, hwloc_obj_t pu, hwloc_bitmap_t out)
{
	const struct node *best = NULL;
	struct merit most = {0}, m;
	bool known = true;
	int n = 0, added = 0;

	for (unsigned i = 0; i < l->n; i++)
		if (serves(l, w, &l->list[i], pu)) {
			m = w->merit(l->t, &l->list[i], pu);
			known &= m.known;
			if (!n++ || compare(&l->list[i], m, best, most) < 0) {
				best = &l->list[i];
				most = m;
			}
		}
	if (n > 1 && !known)
		return -1;
	for (unsigned i = 0; n && i < l->n; i++)
		if (serves(l, w, &l->list[i], pu) &&
		    !compare(&l->list[i], w->merit(l->t, &l->list[i], pu), best, most)) {
			hwloc_bitmap_set(out, l->list[i].obj->os_index);
			added++;
		}
	return added;
}

/*
 * Where all memory that is local to a PU is none, the kernel has it from another NUMA node: from the nearest of those
 * that a policy names, so that it names all of the first tier.
 */
static void add_remote(const struct node_list *l, hwloc_bitmap_t out)
{
	enum tier first = TIER_COUNT;

	for (unsigned i = 0; i < l->n; i++)
		if (has_memory(l, &l->list[i]) && l->list[i].tier < first)
			first = l->list[i].tier;
	for (unsigned i = 0; i < l->n; i++)
		if (has_memory(l, &l->list[i]) && l->list[i].tier == first)
			hwloc_bitmap_set(out, l->list[i].obj->os_index);
}

/* For MEMORY_OFF: where a PU is, though the memory there is none. */
static void add_around(const struct node_list *l, hwloc_obj_t pu, hwloc_bitmap_t out)
{
	for (unsigned i = 0; i < l->n; i++)
		if (hwloc_bitmap_isset(l->list[i].obj->cpuset, pu->os_index))
			hwloc_bitmap_set(out, l->list[i].obj->os_index);
}

int memory_nodes_choose(hwloc_topology_t t, enum bind_memory wanted, hwloc_const_bitmap_t pus, hwloc_bitmap_t out,
	struct err *e)
{
	const struct want *w = &wants[wanted];
	struct node_list l;
	hwloc_obj_t pu = NULL;
	int rc = 0;

	hwloc_bitmap_zero(out);
	if (list_read(t, &l))
		return err_set(e, "out of memory");
	while (!rc && (pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu))) {
		int n;

		if (!hwloc_bitmap_isset(pus, pu->os_index))
			continue;
		if ((n = add_best(&l, w, pu, out)) < 0)
			rc = err_set(e, "the topology does not state the %s of all memory that is local to its cores",
				     wanted == MEMORY_LATENCY ? "latency" : "bandwidth");
		else if (!n && wanted == MEMORY_OFF)
			add_around(&l, pu, out);
		else if (!n && !w->name)
			add_remote(&l, out);
	}
	if (!rc && w->name && hwloc_bitmap_iszero(out))
		rc = err_set(e, "no %s is local to its cores", w->name);
	free(l.list);
	return rc;
}

void memory_nodes_tiers(hwloc_topology_t t, hwloc_const_bitmap_t nodes, char *out, size_t size)
{
	unsigned all = 0, has = 0;
	struct node_list l;
	size_t len = 0;

	*out = '\0';
	if (list_read(t, &l))
		return;
	for (unsigned i = 0; i < l.n; i++) {
		all |= TIER(l.list[i].tier);
		if (hwloc_bitmap_isset(nodes, l.list[i].obj->os_index))
			has |= TIER(l.list[i].tier);
	}
	free(l.list);
	for (unsigned tier = 0; tier < TIER_COUNT && (all & (all - 1)) && len < size; tier++)
		if (has & TIER(tier))
			len += snprintf(out + len, size - len, "%s%s", len ? "+" : "", tier_name(tier));
}
