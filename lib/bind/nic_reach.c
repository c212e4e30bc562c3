/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic_reach.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Memory that holds no PU, or all the PUs of a smaller or an earlier one, is no domain. */
static bool is_domain(hwloc_topology_t t, hwloc_obj_t node)
{
	hwloc_obj_t other = NULL;

	if (hwloc_bitmap_iszero(node->cpuset))
		return false;
	while ((other = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, other))) {
		if (other == node || hwloc_bitmap_iszero(other->cpuset) || !hwloc_bitmap_isincluded(other->cpuset, node->cpuset))
			continue;
		if (!hwloc_bitmap_isequal(other->cpuset, node->cpuset) || other->logical_index < node->logical_index)
			return false;
	}
	return true;
}

int domains_find(hwloc_topology_t t, struct domains *out, struct err *e)
{
	int count = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
	struct domains d = {0};
	hwloc_obj_t node = NULL;

	if (!(d.node = calloc(count > 0 ? count : 1, sizeof(*d.node))))
		return err_set(e, "out of memory");
	while ((node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node)))
		if (is_domain(t, node))
			d.node[d.n++] = node;
	*out = d;
	return 0;
}

void domains_free(struct domains *d)
{
	free(d->node);
	*d = (struct domains){0};
}

/* What the firmware says, and where that makes no difference, whether it is the same package. */
static unsigned long apart(hwloc_topology_t t, struct hwloc_distances_s *latency, hwloc_obj_t from, hwloc_obj_t to)
{
	hwloc_obj_t a = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, from);
	hwloc_obj_t b = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, to);
	hwloc_uint64_t there = 1, back;

	if (latency && hwloc_distances_obj_pair_values(latency, from, to, &there, &back))
		there = 1;
	return 1 + 2 * (there < ULONG_MAX / 4 ? there : ULONG_MAX / 4) + (a != b);
}

static unsigned long nearest(hwloc_topology_t t, struct hwloc_distances_s *latency, const struct domains *d, unsigned from,
			     const struct nic *n)
{
	unsigned long least = ULONG_MAX;

	for (unsigned to = 0; to < d->n; to++) {
		if (hwloc_bitmap_intersects(d->node[to]->cpuset, n->near)) {
			unsigned long far = apart(t, latency, d->node[from], d->node[to]);

			least = far < least ? far : least;
		}
	}
	return least;
}

int reach_find(hwloc_topology_t t, const struct nics *n, struct reach *out, struct err *e)
{
	struct hwloc_distances_s *latency = NULL;
	struct reach r = { .nics = n };
	unsigned one = 1;

	if (domains_find(t, &r.domains, e))
		return -1;
	if (!(r.far = calloc((size_t) n->n * r.domains.n + 1, sizeof(*r.far)))) {
		reach_free(&r);
		return err_set(e, "out of memory");
	}
	if (hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &one, &latency, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) || !one)
		latency = NULL;
	for (unsigned i = 0; i < n->n; i++)
		for (unsigned from = 0; from < r.domains.n; from++)
			r.far[i * r.domains.n + from] = nearest(t, latency, &r.domains, from, &n->nic[i]);
	if (latency)
		hwloc_distances_release(t, latency);
	*out = r;
	return 0;
}

void reach_free(struct reach *r)
{
	domains_free(&r->domains);
	free(r->far);
	r->far = NULL;
}

unsigned long reach_distance(const struct reach *r, unsigned device, hwloc_const_bitmap_t pus)
{
	const unsigned long *far = r->far + (size_t) device * r->domains.n;
	unsigned long least = ULONG_MAX;

	if (hwloc_bitmap_intersects(r->nics->nic[device].near, pus))
		return 0;
	for (unsigned i = 0; i < r->domains.n; i++)
		if (far[i] < least && hwloc_bitmap_intersects(r->domains.node[i]->cpuset, pus))
			least = far[i];
	return least;
}
