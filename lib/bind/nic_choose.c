/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic.h"

#include "base/std.h"
#include "bind/gpu.h"

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
		for (unsigned from = 0; from < r.domains.n; from++) {
			unsigned long *least = &r.distance[i * r.domains.n + from];

			*least = ULONG_MAX;
			for (unsigned to = 0; to < r.domains.n; to++) {
				unsigned long far;

				if (!hwloc_bitmap_intersects(r.domains.node[to]->cpuset, n->nic[i].near))
					continue;
				far = node_distance(t, latency, r.domains.node[from], r.domains.node[to]);
				*least = far < *least ? far : *least;
			}
		}
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

/* Devices that share no more than a host bridge reach each other through the processor. */
static unsigned shared_depth(hwloc_obj_t gpu, hwloc_obj_t nic)
{
	for (hwloc_obj_t o = gpu->parent; o && o->type == HWLOC_OBJ_BRIDGE; o = o->parent) {
		hwloc_obj_t below = o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? nic : NULL;

		while (below && below != o)
			below = below->parent;
		if (below)
			return o->attr->bridge.depth;
	}
	return 0;
}

unsigned *nics_beside_gpus(hwloc_topology_t t, const struct nics *n, const char *gpus, const uint64_t *which,
			   unsigned ntasks)
{
	unsigned *beside = calloc((size_t) ntasks * n->n + 1, sizeof(*beside)), count = gpu_count(gpus);
	bool any = false;

	for (unsigned g = 0; beside && g < count; g++) {
		hwloc_obj_t gpu = gpu_function(t, gpus, g);

		for (unsigned i = 0; gpu && i < n->n; i++) {
			const struct nic *d = &n->nic[i];
			hwloc_obj_t nic = hwloc_get_pcidev_by_busid(t, d->domain, d->bus, d->slot, d->function);
			unsigned depth = nic ? shared_depth(gpu, nic) : 0;

			any |= depth;
			for (unsigned task = 0; task < ntasks; task++)
				if (which[task] >> g & 1 && depth > beside[(size_t) task * n->n + i])
					beside[(size_t) task * n->n + i] = depth;
		}
	}
	if (any)
		return beside;
	free(beside);
	return NULL;
}

#define DEPTH_MAX 256u	/* of a PCI bridge: as many as there are buses */

static bool is_usable(const struct nic *n, enum nic_kind kind)
{
	return n->active && n->kind == kind;
}

/* The bipartite graph of tasks and their nearest devices, and the assignment so far. */
struct nic_match {
	unsigned tasks, devices;
	bool *near;		/* [task * devices + device] */
	unsigned *load;		/* tasks of each device */
	int *chosen;		/* the caller's */
	unsigned *queue, *via;	/* of the breadth-first search: devices as found, and through which task */
	bool *found;
};

/* Deeper bridges count as nearer, and all of them as nearer than what is only local to the same PUs. */
static unsigned long distance_of(const struct nic_request *a, const struct nic_distances *r, unsigned task,
	unsigned device)
{
	unsigned depth = a->beside ? a->beside[(size_t) task * r->nics->n + device] : 0;
	unsigned long far = nic_distance(r, device, a->masks[task]);

	return depth ? DEPTH_MAX - (depth < DEPTH_MAX ? depth : DEPTH_MAX) :
	       far < ULONG_MAX - DEPTH_MAX ? DEPTH_MAX + far : far;
}

static void find_near(struct nic_match *m, const struct nic_request *a, const struct nic_distances *r,
	enum nic_kind kind, unsigned task)
{
	bool *near = m->near + (size_t) task * m->devices;
	unsigned long least = ULONG_MAX;

	for (unsigned i = 0; i < m->devices && !hwloc_bitmap_iszero(a->masks[task]); i++) {
		unsigned long far = is_usable(&r->nics->nic[i], kind) ? distance_of(a, r, task, i) : ULONG_MAX;

		if (far < least)
			memset(near, 0, m->devices * sizeof(*near));
		if (far < least)
			least = far;
		near[i] = far == least && far < ULONG_MAX;
	}
}

static unsigned expand_task(struct nic_match *m, unsigned task, unsigned n)
{
	for (unsigned d = 0; d < m->devices; d++) {
		if (!m->near[(size_t) task * m->devices + d] || m->found[d])
			continue;
		m->found[d] = true;
		m->via[d] = task;
		m->queue[n++] = d;
	}
	return n;
}

/*
 * Assign each task in turn to the least loaded device reachable by moving earlier tasks between their nearest devices,
 * along a shortest alternating path: the result is an optimal semi-matching (Harvey, Ladner, Lovasz and Tamir,
 * "Semi-matchings for bipartite graphs and load balancing", J. Algorithms 59, 2006, algorithm ASM1).
 */
static void match_add(struct nic_match *m, unsigned task)
{
	unsigned n, best;

	memset(m->found, 0, m->devices * sizeof(*m->found));
	n = expand_task(m, task, 0);
	if (!n)
		return;
	best = m->queue[0];
	for (unsigned i = 0; i < n; i++) {
		if (m->load[m->queue[i]] < m->load[best])
			best = m->queue[i];
		for (unsigned u = 0; u < task; u++)
			if (m->chosen[u] == (int) m->queue[i])
				n = expand_task(m, u, n);
	}
	m->load[best]++;
	for (int to = best, from; to >= 0; to = from) {
		from = m->chosen[m->via[to]];
		m->chosen[m->via[to]] = to;
	}
}

int nics_choose(const struct nic_request *a, enum nic_kind kind, int *chosen, struct err *e)
{
	size_t n = a->nics->n + 1;
	struct nic_match m = { .tasks = a->nlocal, .devices = a->nics->n, .chosen = chosen,
		.near = calloc(a->nlocal * n + 1, sizeof(*m.near)), .load = calloc(n, sizeof(*m.load)),
		.queue = calloc(n, sizeof(*m.queue)), .via = calloc(n, sizeof(*m.via)),
		.found = calloc(n, sizeof(*m.found)) };
	struct nic_distances r;
	int rc = m.near && m.load && m.queue && m.via && m.found ? 0 : err_set(e, "out of memory");

	if (!rc && !(rc = nic_distances_find(a->topology, a->nics, &r, e))) {
		for (unsigned i = 0; i < a->nlocal; i++) {
			chosen[i] = -1;
			find_near(&m, a, &r, kind, i);
			match_add(&m, i);
		}
		nic_distances_free(&r);
	}
	free(m.near);
	free(m.load);
	free(m.queue);
	free(m.via);
	free(m.found);
	return rc;
}

int nics_rails(const struct nic_request *a, enum nic_kind kind, const int *chosen, hwloc_bitmap_t rails, struct err *e)
{
	struct nic_distances r;
	unsigned long least;

	hwloc_bitmap_zero(rails);
	if (chosen[a->local] < 0)
		return 0;
	hwloc_bitmap_set(rails, chosen[a->local]);
	if (a->request->nic != NIC_LOCAL && a->request->nic != NIC_ALL)
		return 0;
	if (nic_distances_find(a->topology, a->nics, &r, e))
		return -1;
	least = distance_of(a, &r, a->local, chosen[a->local]);
	for (unsigned i = 0; i < a->nics->n; i++)
		if (is_usable(&a->nics->nic[i], kind) &&
		    (a->request->nic == NIC_ALL || distance_of(a, &r, a->local, i) == least))
			hwloc_bitmap_set(rails, i);
	nic_distances_free(&r);
	return 0;
}
