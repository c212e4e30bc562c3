/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic_distance.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Memory without PUs, or whose PUs include those of a smaller or an earlier one, does not count. */
static bool is_domain(hwloc_topology_t t, hwloc_obj_t node)
{
	hwloc_obj_t other = NULL;

	if (hwloc_bitmap_iszero(node->cpuset))
		return false;
	while ((other = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, other))) {
		if (other == node || hwloc_bitmap_iszero(other->cpuset) ||
		    !hwloc_bitmap_isincluded(other->cpuset, node->cpuset))
			continue;
		if (!hwloc_bitmap_isequal(other->cpuset, node->cpuset) || other->logical_index < node->logical_index)
			return false;
	}
	return true;
}

int nic_domains_find(hwloc_topology_t t, struct nic_domains *out, struct err *e)
{
	int count = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
	struct nic_domains d = {0};
	hwloc_obj_t node = NULL;

	if (!(d.node = calloc(count > 0 ? count : 1, sizeof(*d.node))))
		return err_set(e, "out of memory");
	while ((node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node)))
		if (is_domain(t, node))
			d.node[d.n++] = node;
	*out = d;
	return 0;
}

void nic_domains_free(struct nic_domains *d)
{
	free(d->node);
	*d = (struct nic_domains){0};
}

/* The firmware's latency, refined by whether the package is the same. */
static unsigned long node_distance(hwloc_topology_t t, struct hwloc_distances_s *latency, hwloc_obj_t from,
	hwloc_obj_t to)
{
	hwloc_obj_t a = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, from);
	hwloc_obj_t b = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, to);
	hwloc_uint64_t there = 1, back;

	if (latency && hwloc_distances_obj_pair_values(latency, from, to, &there, &back))
		there = 1;
	return 1 + 2 * (there < ULONG_MAX / 4 ? there : ULONG_MAX / 4) + (a != b);
}

static unsigned long nearest(hwloc_topology_t t, struct hwloc_distances_s *latency, const struct nic_domains *d,
	unsigned from,      const struct nic *n)
{
	unsigned long least = ULONG_MAX;

	for (unsigned to = 0; to < d->n; to++) {
		if (hwloc_bitmap_intersects(d->node[to]->cpuset, n->near)) {
			unsigned long far = node_distance(t, latency, d->node[from], d->node[to]);

			least = far < least ? far : least;
		}
	}
	return least;
}

int nic_distances_find(hwloc_topology_t t, const struct nics *n, struct nic_distances *out, struct err *e)
{
	struct hwloc_distances_s *latency = NULL;
	struct nic_distances r = { .nics = n };
	unsigned one = 1;

	if (nic_domains_find(t, &r.domains, e))
		return -1;
	if (!(r.distance = calloc((size_t) n->n * r.domains.n + 1, sizeof(*r.distance)))) {
		nic_distances_free(&r);
		return err_set(e, "out of memory");
	}
	if (hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &one, &latency, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ||
	    !one)
		latency = NULL;
	for (unsigned i = 0; i < n->n; i++)
		for (unsigned from = 0; from < r.domains.n; from++)
			r.distance[i * r.domains.n + from] = nearest(t, latency, &r.domains, from, &n->nic[i]);
	if (latency)
		hwloc_distances_release(t, latency);
	*out = r;
	return 0;
}

void nic_distances_free(struct nic_distances *r)
{
	nic_domains_free(&r->domains);
	free(r->distance);
	r->distance = NULL;
}

unsigned long nic_distance(const struct nic_distances *r, unsigned device, hwloc_const_bitmap_t pus)
{
	const unsigned long *distance = r->distance + (size_t) device * r->domains.n;
	unsigned long least = ULONG_MAX;

	if (hwloc_bitmap_intersects(r->nics->nic[device].near, pus))
		return 0;
	for (unsigned i = 0; i < r->domains.n; i++)
		if (distance[i] < least && hwloc_bitmap_intersects(r->domains.node[i]->cpuset, pus))
			least = distance[i];
	return least;
}
