/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind/nic_distance.h"

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

static void match_free(struct nic_match *m)
{
	free(m->near);
	free(m->load);
	free(m->queue);
	free(m->via);
	free(m->found);
}

static int match_make(struct nic_match *m, struct err *e)
{
	m->near = calloc((size_t) m->tasks * m->devices + 1, sizeof(*m->near));
	m->load = calloc(m->devices + 1, sizeof(*m->load));
	m->queue = calloc(m->devices + 1, sizeof(*m->queue));
	m->via = calloc(m->devices + 1, sizeof(*m->via));
	m->found = calloc(m->devices + 1, sizeof(*m->found));
	if (m->near && m->load && m->queue && m->via && m->found)
		return 0;
	match_free(m);
	return err_set(e, "out of memory");
}

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
	struct nic_match m = { .tasks = a->nlocal, .devices = a->nics->n, .chosen = chosen };
	struct nic_distances r;

	if (nic_distances_find(a->topology, a->nics, &r, e))
		return -1;
	if (match_make(&m, e)) {
		nic_distances_free(&r);
		return -1;
	}
	for (unsigned i = 0; i < a->nlocal; i++) {
		chosen[i] = -1;
		find_near(&m, a, &r, kind, i);
		match_add(&m, i);
	}
	nic_distances_free(&r);
	match_free(&m);
	return 0;
}

static int add_equally_near(const struct nic_request *a, enum nic_kind kind, unsigned chosen, hwloc_bitmap_t rails,
	struct err *e)
{
	struct nic_distances r;
	unsigned long least;

	if (nic_distances_find(a->topology, a->nics, &r, e))
		return -1;
	least = distance_of(a, &r, a->local, chosen);
	for (unsigned i = 0; i < a->nics->n; i++)
		if (is_usable(&a->nics->nic[i], kind) && distance_of(a, &r, a->local, i) == least)
			hwloc_bitmap_set(rails, i);
	nic_distances_free(&r);
	return 0;
}

int nics_rails(const struct nic_request *a, enum nic_kind kind, const int *chosen, hwloc_bitmap_t rails, struct err *e)
{
	hwloc_bitmap_zero(rails);
	if (chosen[a->local] < 0)
		return 0;
	hwloc_bitmap_set(rails, chosen[a->local]);
	if (a->request->nic == NIC_LOCAL)
		return add_equally_near(a, kind, chosen[a->local], rails, e);
	for (unsigned i = 0; a->request->nic == NIC_ALL && i < a->nics->n; i++)
		if (is_usable(&a->nics->nic[i], kind))
			hwloc_bitmap_set(rails, i);
	return 0;
}
