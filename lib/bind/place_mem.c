/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bind/place.h"
#include "bind/pu_tree.h"

/*
 * Memory first (Leon, "mpibind: a memory-centric affinity algorithm for hybrid applications", MEMSYS 2017), extended
 * to parts of nodes. struct numa_share: one or more NUMA nodes and the tasks on them.
 */
struct numa_share {
	struct pu_range pus;
	unsigned ntasks;
};

/* The objects that are divided among tasks, and how many PUs of each are used. */
struct division {
	const struct pu_tree *p;
	struct pu_range *object;
	unsigned n, smt;
};

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool have_room(const struct numa_share *s, unsigned n, unsigned ntasks, unsigned cpus)
{
	unsigned room = 0;

	for (unsigned i = 0; i < n; i++)
		room += pu_range_size(s[i].pus) / cpus;
	return room >= ntasks;
}

/* Tasks in proportion to PUs by largest remainder; no share gets more than its PUs allow, if there is room for all. */
static void apportion(struct numa_share *s, unsigned n, unsigned npus, unsigned ntasks, unsigned cpus)
{
	if (!have_room(s, n, ntasks, cpus))
		cpus = 0;
	for (unsigned task = 0; task < ntasks; task++) {
		long long most = LLONG_MIN;
		unsigned best = 0;

		for (unsigned i = 0; i < n; i++) {
			unsigned size = pu_range_size(s[i].pus);
			long long deficit = (long long) size * ntasks - (long long) s[i].ntasks * npus;

			if ((s[i].ntasks + 1ULL) * cpus <= size && deficit > most)
				best = i, most = deficit;
		}
		s[best].ntasks++;
	}
}

/* The number of tasks needed to cover all domains when none has more than that many PUs. */
static unsigned tasks_needed(const struct numa_share *s, unsigned n, unsigned most)
{
	unsigned count = 1, has = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned size = pu_range_size(s[i].pus);

		count += has + size > most;
		has = has + size > most ? size : has + size;
	}
	return count;
}

static unsigned largest(const struct numa_share *s, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++)
		if (pu_range_size(s[i].pus) > pu_range_size(s[at].pus))
			at = i;
	return at;
}

/*
 * Fewer tasks than domains: each gets adjacent whole domains, as evenly as possible; only the largest of these where
 * the task's CPUs are known to fit into it.
 */
static unsigned join_domains(struct numa_share *s, unsigned n, unsigned npus, unsigned ntasks, unsigned cpus)
{
	unsigned most = pu_range_size(s[largest(s, n)].pus), next = 0;

	while (tasks_needed(s, n, most) > ntasks)
		most++;
	for (unsigned i = 0; i < ntasks; i++) {
		unsigned first = next++, best, left = ntasks - i;
		struct pu_range pus = s[first].pus;
		unsigned fair = (npus - pus.lo + left - 1) / left;

		while (n - next >= left && pu_range_size(pus) < fair && s[next].pus.hi - pus.lo <= most)
			pus.hi = s[next++].pus.hi;
		if (left == 1)
			pus.hi = npus, next = n;
		best = first + largest(s + first, next - first);
		if (cpus && pu_range_size(s[best].pus) >= cpus)
			pus = s[best].pus;
		s[i] = (struct numa_share){ pus, 1 };
	}
	return ntasks;
}

static bool all_fit(const struct numa_share *s, unsigned n, unsigned cpus)
{
	for (unsigned i = 0; i < n; i++)
		if ((unsigned long long) s[i].ntasks * cpus > pu_range_size(s[i].pus))
			return false;
	return true;
}

/* The objects at a depth, if they cover all of these PUs; else 0. */
static unsigned objects_at(struct division *d, int depth, struct pu_range pus)
{
	unsigned n = 0, held = 0;

	for (unsigned i = 0; i < d->p->n; i++) {
		const struct pu_tree_object *object = &d->p->object[i];

		if (object->obj->depth != depth || object->pus.lo < pus.lo || object->pus.hi > pus.hi)
			continue;
		d->object[n++] = object->pus;
		held += pu_range_size(object->pus);
	}
	return held == pu_range_size(pus) ? n : 0;
}

static unsigned cores_in(struct division *d, struct pu_range pus)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->p->ncores; i++) {
		struct pu_range c = d->p->core[i];

		c.lo = c.lo > pus.lo ? c.lo : pus.lo;
		c.hi = min_of(c.hi, pus.hi);
		if (c.lo < c.hi)
			d->object[n++] = c;
	}
	return n;
}

static unsigned pus_used(const struct division *d)
{
	unsigned pus = 0;

	for (unsigned i = 0; i < d->n; i++)
		pus += min_of(pu_range_size(d->object[i]), d->smt);
	return pus;
}

/* The first level from the top with an object for each thread, else cores with as many PUs of each as needed. */
static void choose_level(struct division *d, struct pu_range pus, unsigned threads)
{
	d->smt = 1;
	for (int depth = 0; depth < d->p->core_depth; depth++)
		if ((d->n = objects_at(d, depth, pus)) >= threads)
			return;
	d->n = cores_in(d, pus);
	for (unsigned before = 0, now; (now = pus_used(d)) < threads && now > before; before = now)
		d->smt++;
}

static void add_pus(const struct division *d, struct pu_range pus, hwloc_bitmap_t mask)
{
	for (unsigned pu = pus.lo; pu < pus.hi; pu++)
		hwloc_bitmap_or(mask, mask, d->p->pu[pu]->cpuset);
}

static void divide_by_objects(const struct division *d, unsigned ntasks, hwloc_bitmap_t *masks)
{
	for (unsigned i = 0; i < ntasks; i++) {
		struct pu_range mine = pu_range_share(d->n, ntasks, i);

		for (unsigned o = mine.lo; o < mine.hi; o++)
			add_pus(d, (struct pu_range){ d->object[o].lo,
				min_of(d->object[o].hi, d->object[o].lo + d->smt) }, masks[i]);
	}
}

/* Fewer objects than tasks: tasks that share an object divide its PUs. False where one has too few PUs. */
static bool divide_objects(const struct division *d, unsigned ntasks, hwloc_bitmap_t *masks)
{
	bool enough = true;

	for (unsigned o = 0; o < d->n; o++) {
		struct pu_range tasks = pu_range_share(ntasks, d->n, o);
		unsigned lo = d->object[o].lo, pus = min_of(pu_range_size(d->object[o]), d->smt);

		enough = enough && pus >= pu_range_size(tasks);
		for (unsigned i = tasks.lo; i < tasks.hi; i++) {
			struct pu_range mine = pu_range_share(pus, pu_range_size(tasks), i - tasks.lo);

			add_pus(d, (struct pu_range){ lo + mine.lo, lo + mine.hi }, masks[i]);
		}
	}
	return enough;
}

/* All PUs in tree order, where objects would leave a task with too few. */
static void divide_pus(const struct division *d, struct pu_range pus, unsigned ntasks, hwloc_bitmap_t *masks)
{
	for (unsigned i = 0; i < ntasks; i++) {
		struct pu_range mine = pu_range_share(pu_range_size(pus), ntasks, i);

		hwloc_bitmap_zero(masks[i]);
		add_pus(d, (struct pu_range){ pus.lo + mine.lo, pus.lo + mine.hi }, masks[i]);
	}
}

static bool all_have_cpus(const hwloc_bitmap_t *masks, unsigned ntasks, unsigned cpus)
{
	for (unsigned i = 0; i < ntasks; i++)
		if ((unsigned) hwloc_bitmap_weight(masks[i]) < cpus)
			return false;
	return true;
}

static void share_out(struct division *d, const struct numa_share *s, unsigned cpus, hwloc_bitmap_t *masks)
{
	unsigned pus = pu_range_size(s->pus);
	bool good = true;

	if (!s->ntasks)
		return;
	if (cpus) {
		choose_level(d, s->pus, cpus * s->ntasks);
	} else {
		unsigned cores = cores_in(d, s->pus);

		cpus = cores > s->ntasks ? cores / s->ntasks : 1;
		choose_level(d, s->pus, cores > s->ntasks ? cores : s->ntasks);
	}
	if (d->n >= s->ntasks)
		divide_by_objects(d, s->ntasks, masks);
	else
		good = divide_objects(d, s->ntasks, masks);
	if (pus >= s->ntasks && !(good && all_have_cpus(masks, s->ntasks, min_of(cpus, pus / s->ntasks))))
		divide_pus(d, s->pus, s->ntasks, masks);
}

static int place_by_memory(struct division *d, struct numa_share *s, unsigned n, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	static const struct bind_request compact_numa = { .place = PLACE_COMPACT, .level = "numa" };

	if (ntasks < n)
		n = join_domains(s, n, d->p->npus, ntasks, cpus);
	else
		apportion(s, n, d->p->npus, ntasks, cpus ? cpus : 1);
	if (!all_fit(s, n, cpus) && (unsigned long long) ntasks * cpus <= d->p->npus)
		return place_grid(d->p, &compact_numa, ntasks, cpus, masks, e);
	for (unsigned i = 0; i < n; masks += s[i++].ntasks)
		share_out(d, &s[i], cpus, masks);
	return 0;
}

int place_mem(const struct pu_tree *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	struct pu_range *domain;
	struct numa_share *share;
	struct division d = { .p = p };
	unsigned n;
	int rc;

	if (!(domain = pu_tree_domains(p, "numa", &n, e)))
		return -1;
	share = calloc(n, sizeof(*share));
	d.object = calloc(p->n + p->npus, sizeof(*d.object));
	for (unsigned i = 0; share && i < n; i++)
		share[i].pus = domain[i];
	rc = share && d.object ? place_by_memory(&d, share, n, ntasks, cpus, masks, e) : err_set(e, "out of memory");
	free(domain);
	free(share);
	free(d.object);
	return rc;
}
