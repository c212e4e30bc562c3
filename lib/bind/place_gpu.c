/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind/gpu.h"
#include "bind/nic_distance.h"
#include "bind/pu_tree.h"

#define DISTANCE_MAX (1ul << 20)	/* firmware tells 10 to 255; what is unknown counts as this */

/* The work space of one gpu_place. */
struct gpu_placing {
	const struct gpu_places *how;
	struct pu_tree tree;
	struct nic_distances far;	/* of the GPUs, as devices with PUs near them */
	struct nics devices;
	struct placing {		/* for some CPUs a task */
		unsigned cpus, nslots, *slot;
		hwloc_bitmap_t *slots;
		unsigned long *distance;
		uint64_t *gpus;
		unsigned long long sum;
	} best;
};

static void placing_free(struct placing *p)
{
	for (unsigned i = 0; p->slots && i < p->nslots; i++)
		hwloc_bitmap_free(p->slots[i]);
	free(p->slots);
	free(p->slot);
	free(p->distance);
	free(p->gpus);
	*p = (struct placing){0};
}

/* From the farthest NUMA node of the slot. */
static unsigned long gpu_distance(const struct gpu_placing *x, hwloc_const_bitmap_t slot, unsigned gpu)
{
	unsigned long most = 0;

	for (unsigned i = 0; i < x->far.domains.n; i++) {
		hwloc_const_bitmap_t domain = x->far.domains.node[i]->cpuset;
		unsigned long far = hwloc_bitmap_intersects(domain, slot) ? nic_distance(&x->far, gpu, domain) : 0;

		most = far > most ? far : most;
	}
	return most < DISTANCE_MAX ? most : DISTANCE_MAX;
}

/* To each of these GPUs. A task whose GPUs are fixed has a group that counts as one. */
static unsigned long slot_distance(const struct gpu_placing *x, hwloc_const_bitmap_t slot, uint64_t gpus)
{
	unsigned long sum = 0;

	for (unsigned i = 0; i < x->how->ngpus; i++)
		if (gpus >> i & 1)
			sum += gpu_distance(x, slot, i);
	return sum;
}

/* Try so many CPUs a task. 0 or -1; free with placing_free in any case. */
static int try_cpus(const struct gpu_placing *x, unsigned cpus, struct placing *p, struct err *e)
{
	const struct gpu_places *how = x->how;
	struct gpu_match m = { .ntasks = how->ntasks, .ngpus = how->fixed ? how->ntasks : how->ngpus };

	*p = (struct placing){ .cpus = cpus };
	if (place_slots(&x->tree, how->ntasks, cpus, &p->slots, &p->nslots, e))
		return -1;
	p->slot = calloc(how->ntasks, sizeof(*p->slot));
	p->gpus = calloc(how->ntasks, sizeof(*p->gpus));
	p->distance = calloc((size_t) p->nslots * m.ngpus + 1, sizeof(*p->distance));
	if (!p->slot || !p->gpus || !p->distance)
		return err_set(e, "out of memory");
	for (unsigned s = 0; s < p->nslots; s++) {
		if (!p->slots[s])
			return err_set(e, "out of memory");
		for (unsigned i = 0; i < m.ngpus; i++)
			p->distance[(size_t) s * m.ngpus + i] =
				slot_distance(x, p->slots[s], how->fixed ? how->fixed[i] : UINT64_C(1) << i);
	}
	m.nslots = p->nslots;
	m.distance = p->distance;
	m.room = p->nslots ? (how->ntasks + p->nslots - 1) / p->nslots : 0;
	return gpu_match(&m, p->slot, p->gpus, &p->sum, e);
}

/* The next smaller number of CPUs by which a NUMA node or the step is divided without rest; 0: none. */
static unsigned next_cpus(const struct gpu_placing *x, unsigned below)
{
	unsigned best = 0;

	for (unsigned i = 0; i < x->far.domains.n; i++) {
		unsigned cores = 0;

		for (unsigned c = 0; c < x->tree.ncores; c++)
			cores += hwloc_bitmap_intersects(x->far.domains.node[i]->cpuset,
							  x->tree.pu[x->tree.core[c].lo]->cpuset);
		for (unsigned parts = 1; parts <= x->how->ntasks && cores / parts > best; parts++)
			if (cores / parts < below && cores / parts > best)
				best = cores / parts;
	}
	return best;
}

/* As many whole cores as leave the tasks as near to their GPUs as one core each would. */
static int choose_cpus(struct gpu_placing *x, struct err *e)
{
	unsigned cores = x->tree.ncores / x->how->ntasks;
	unsigned long long least;

	if (x->how->cpus)
		return try_cpus(x, x->how->cpus < x->tree.npus ? x->how->cpus : x->tree.npus, &x->best, e);
	if (try_cpus(x, 1, &x->best, e))
		return -1;
	least = x->best.sum;
	for (unsigned cpus = cores; cpus > 1; cpus = next_cpus(x, cpus)) {
		struct placing p;
		int rc = try_cpus(x, cpus, &p, e);

		if (!rc && p.sum > least) {
			placing_free(&p);
			continue;
		}
		placing_free(&x->best);
		x->best = p;
		return rc;
	}
	return 0;
}

static int devices_make(struct gpu_placing *x, struct err *e)
{
	x->devices.nic = calloc(x->how->ngpus, sizeof(*x->devices.nic));
	if (!x->devices.nic)
		return err_set(e, "out of memory");
	for (; x->devices.n < x->how->ngpus; x->devices.n++)
		x->devices.nic[x->devices.n].near = x->how->near[x->devices.n];
	return nic_distances_find(x->how->node, &x->devices, &x->far, e);
}

/* The nearest core that the mask does not have, of those near a GPU or, with NULL, of all. p->ncores: none is left. */
static unsigned nearest_core(const struct pu_tree *p, const hwloc_bitmap_t *core, const unsigned long *far,
	hwloc_const_bitmap_t near, hwloc_const_bitmap_t mask)
{
	unsigned best = p->ncores;

	for (unsigned c = 0; c < p->ncores; c++)
		if (!hwloc_bitmap_isincluded(core[c], mask) && (!near || hwloc_bitmap_intersects(core[c], near)) &&
		    (best == p->ncores || far[c] < far[best]))
			best = c;
	return best;
}

/*
 * A task alone has all GPUs, which may be anywhere: each in turn gives it a core near it, until it has its CPUs, or all
 * such cores. Then follow the nearest others, for the rest of its CPUs or where no core is near.
 */
static int place_alone(struct gpu_placing *x, hwloc_bitmap_t mask, uint64_t *out, struct err *e)
{
	uint64_t gpus = *out = x->how->fixed ? *x->how->fixed : UINT64_MAX >> (64 - x->how->ngpus);
	unsigned want = x->how->cpus ? x->how->cpus : UINT_MAX, n = x->how->ngpus, got = 0, each = 0, room = 0;
	const struct pu_tree *p = &x->tree;
	unsigned long *far = calloc(p->ncores + 1, sizeof(*far));
	hwloc_bitmap_t *core = calloc(p->ncores + 1, sizeof(*core));
	int rc = far && core ? 0 : -1;

	for (unsigned c = 0; !rc && c < p->ncores; c++) {
		rc = (core[c] = hwloc_bitmap_alloc()) ? 0 : -1;
		for (unsigned pu = p->core[c].lo; !rc && pu < p->core[c].hi; pu++)
			hwloc_bitmap_or(core[c], core[c], p->pu[pu]->cpuset);
		far[c] = rc ? 0 : slot_distance(x, core[c], gpus);
	}
	/* A whole core for each CPU, or where these are too few for every two, and so on. */
	while (!rc && room < want && room < p->npus) {
		room = 0;
		each++;
		for (unsigned c = 0; c < p->ncores; c++)
			room += pu_range_size(p->core[c]) < each ? pu_range_size(p->core[c]) : each;
	}
	for (unsigned turn = 0, idle = 0; !rc && got < want && idle <= n; turn++) {
		bool others = idle == n, mine = others || gpus >> turn % n & 1;
		hwloc_const_bitmap_t near = others ? NULL : x->how->near[turn % n];
		unsigned c = mine ? nearest_core(p, core, far, near, mask) : p->ncores;

		if (others && got && !x->how->cpus)
			break;
		if (c == p->ncores) {
			idle++;
			continue;
		}
		hwloc_bitmap_or(mask, mask, core[c]);
		got += pu_range_size(p->core[c]) < each ? pu_range_size(p->core[c]) : each;
		idle = others ? idle : 0;
	}
	for (unsigned c = 0; core && c < p->ncores; c++)
		hwloc_bitmap_free(core[c]);
	free(core);
	free(far);
	return rc ? err_set(e, "out of memory") : 0;
}

int gpu_place(const struct gpu_places *how, hwloc_bitmap_t *masks, uint64_t *gpus, struct err *e)
{
	struct gpu_placing x = { .how = how };
	int rc = -1;

	if (pu_tree_new(how->topology, NULL, how->whole, &x.tree, e))
		return -1;
	if (!x.tree.npus || !how->ntasks || !how->ngpus)
		err_set(e, "cannot place %u tasks on %u PUs near %u GPUs", how->ntasks, x.tree.npus, how->ngpus);
	else if (!(rc = devices_make(&x, e)))
		rc = how->ntasks == 1 ? place_alone(&x, masks[0], gpus, e) : choose_cpus(&x, e);
	for (unsigned i = 0; !rc && how->ntasks > 1 && i < how->ntasks; i++) {
		/* With fixed GPUs the groups were matched: group k, whose task is k, has the slot of the task found. */
		unsigned task = how->fixed ? (unsigned) __builtin_ctzll(x.best.gpus[i]) : i;

		gpus[task] = how->fixed ? how->fixed[task] : x.best.gpus[i];
		if (hwloc_bitmap_copy(masks[task], x.best.slots[x.best.slot[i]]))
			rc = err_set(e, "out of memory");
	}
	placing_free(&x.best);
	nic_distances_free(&x.far);
	free(x.devices.nic);
	pu_tree_free(&x.tree);
	return rc;
}
