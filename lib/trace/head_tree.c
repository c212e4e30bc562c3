/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>

#include "trace/head.h"

#if HWLOC_API_VERSION >= 0x00030000
#define TYPE_NAME(out, size, o) hwloc_obj_type_snprintf(out, size, o, 1, NULL)
#else
#define TYPE_NAME(out, size, o) hwloc_obj_type_snprintf(out, size, o, 1)
#endif

/* The PUs of a trace by their number in it. */
struct tree_pus {
	hwloc_obj_t *list;
	unsigned n;
};

/* A NUMA node without PUs belongs to what it is attached to. */
static hwloc_const_bitmap_t cpus_of(hwloc_obj_t o)
{
	while (hwloc_bitmap_iszero(o->cpuset) && o->parent)
		o = o->parent;
	return o->cpuset;
}

static bool object_make(const struct tree_pus *pus, hwloc_obj_t o, struct trace_object *out)
{
	hwloc_const_bitmap_t cpus = cpus_of(o);

	*out = (struct trace_object){ .index = o->logical_index,
				      .os_index = o->os_index == HWLOC_UNKNOWN_INDEX ? -1 : (long) o->os_index };
	for (unsigned i = 0; i < pus->n; i++) {
		if (!hwloc_bitmap_isset(cpus, pus->list[i]->os_index))
			continue;
		if (!out->count++)
			out->first = i;
	}
	return out->count;
}

/* The objects of one depth as a new level, if any has PUs of the trace. */
static int level_add(struct trace_head *h, hwloc_topology_t t, int depth, const struct tree_pus *pus, struct err *e)
{
	unsigned n = hwloc_get_nbobjs_by_depth(t, depth);
	struct trace_level *l = &h->levels[h->nlevels];

	if (!n)
		return 0;
	if (!(l->objects = calloc(n, sizeof(*l->objects))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < n; i++)
		l->n += object_make(pus, hwloc_get_obj_by_depth(t, depth, i), &l->objects[l->n]);
	if (!l->n) {
		free(l->objects);
		return 0;
	}
	qsort(l->objects, l->n, sizeof(*l->objects), trace_object_compare);
	TYPE_NAME(l->type, sizeof(l->type), hwloc_get_obj_by_depth(t, depth, 0));
	h->nlevels++;
	return 0;
}

static unsigned pus_choose(hwloc_topology_t t, hwloc_const_bitmap_t wanted, hwloc_obj_t *list)
{
	unsigned n = 0;

	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, o));)
		if (!wanted || hwloc_bitmap_isset(wanted, o->os_index))
			list[n++] = o;
	return n;
}

int trace_head_tree(struct trace_head *h, hwloc_topology_t t, hwloc_const_bitmap_t wanted, struct err *e)
{
	static const int memory[] = { HWLOC_TYPE_DEPTH_NUMANODE, HWLOC_TYPE_DEPTH_MEMCACHE };
	int depths = hwloc_topology_get_depth(t), rc = 0;
	struct tree_pus pus = { .list = calloc(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU), sizeof(*pus.list)) };

	h->levels = calloc(depths + 2, sizeof(*h->levels));
	if (!pus.list || !h->levels)
		rc = err_set(e, "out of memory");
	else if (!(pus.n = pus_choose(t, wanted, pus.list)))
		rc = err_set(e, "none of these PUs is in the topology");
	for (int d = 0; !rc && d < depths; d++)
		rc = level_add(h, t, d, &pus, e);
	for (int m = 0; !rc && m < 2; m++)
		rc = level_add(h, t, memory[m], &pus, e);
	free(pus.list);
	return rc;
}

int trace_head_machine(struct trace_head *h, bool all, struct err *e)
{
	hwloc_topology_t t;
	int rc;

	if (hwloc_topology_init(&t))
		return err_set(e, "hwloc cannot be initialized");
	if (hwloc_topology_set_flags(t, all ? HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED : 0) || hwloc_topology_load(t))
		rc = err_set(e, "hwloc cannot load this machine's topology");
	else
		rc = trace_head_tree(h, t, NULL, e);
	hwloc_topology_destroy(t);
	return rc;
}
