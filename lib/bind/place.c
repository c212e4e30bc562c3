/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place.h"

#include "bind/place_grid.h"
#include "shape/core_kind.h"

struct kind_list {
	struct core_kind_facts facts[CORE_KINDS_HWLOC];
	hwloc_bitmap_t pus[CORE_KINDS_HWLOC];
	unsigned char kinds[CORE_KINDS_HWLOC];
	unsigned n;
};

static void facts_read(hwloc_topology_t t, unsigned i, hwloc_bitmap_t pus, struct core_kind_facts *f)
{
	int efficiency = -1;
#if HWLOC_API_VERSION >= 0x00030000
	struct hwloc_infos_s *infos = NULL;

	if (hwloc_cpukinds_get_info(t, i, pus, &efficiency, &infos, 0))
		return;
	for (unsigned k = 0; infos && k < infos->count; k++)
		core_kind_read(f, infos->array[k].name, infos->array[k].value);
#else
	struct hwloc_info_s *infos = NULL;
	unsigned n = 0;

	if (hwloc_cpukinds_get_info(t, i, pus, &efficiency, &n, &infos, 0))
		return;
	for (unsigned k = 0; k < n; k++)
		core_kind_read(f, infos[k].name, infos[k].value);
#endif
	f->efficiency = efficiency;
}

/*
 * The PUs of each kind of core in a topology (shape/core_kind.h), the most performant first. Returns the number of
 * kinds with the sets, which the caller frees; 0, without sets, if all are of one kind or memory is short.
 */
static unsigned core_kind_sets(hwloc_topology_t t, hwloc_bitmap_t sets[static CORE_KINDS_MAX])
{
	struct kind_list *l = calloc(1, sizeof(*l));
	unsigned kinds = 0, made = 0;

	if (!l)
		return 0;
	/* Of a restricted topology kinds without PUs are gone. -1: memory is short, or a PU has no kind. */
	hwloc_bitmap_t all = hwloc_bitmap_alloc();
	int n = hwloc_cpukinds_get_nr(t, 0), rc = all ? 0 : -1;

	for (int i = 0; !rc && i < n && i < (int) CORE_KINDS_HWLOC; i++) {
		if (!(l->pus[i] = hwloc_bitmap_alloc())) {
			rc = -1;
			break;
		}
		l->n++;
		l->facts[i].efficiency = -1;
		facts_read(t, i, l->pus[i], &l->facts[i]);
		hwloc_bitmap_or(all, all, l->pus[i]);
	}
	if (!rc && !hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(t), all))
		rc = -1;
	hwloc_bitmap_free(all);
	if (!rc && (kinds = core_kinds_rank(l->facts, l->n, l->kinds)) > 1)
		for (; made < kinds && (sets[made] = hwloc_bitmap_alloc()); made++)
			for (unsigned i = 0; i < l->n; i++)
				if (l->kinds[i] == kinds - 1 - made)
					hwloc_bitmap_or(sets[made], sets[made], l->pus[i]);
	while (made && made < kinds)
		hwloc_bitmap_free(sets[--made]);
	for (unsigned i = 0; i < l->n; i++)
		hwloc_bitmap_free(l->pus[i]);
	free(l);
	return made;
}

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

/* Tasks in proportion to PUs by largest remainder; no share gets more than its PUs allow, if there is room for all. */
static void apportion(struct numa_share *s, unsigned n, unsigned npus, unsigned ntasks, unsigned cpus)
{
	unsigned room = 0;

	for (unsigned i = 0; i < n; i++)
		room += pu_range_size(s[i].pus) / cpus;
	if (room < ntasks)
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

/* The first level from the top with an object for each thread, else cores with as many PUs of each as needed. */
static void choose_level(struct division *d, struct pu_range pus, unsigned threads)
{
	d->smt = 1;
	for (int depth = 0; depth < d->p->core_depth; depth++)
		if ((d->n = objects_at(d, depth, pus)) >= threads)
			return;
	d->n = cores_in(d, pus);
	for (unsigned before = 0, now = 0;; before = now, d->smt++) {
		now = 0;
		for (unsigned i = 0; i < d->n; i++)
			now += min_of(pu_range_size(d->object[i]), d->smt);
		if (now >= threads || now <= before)
			return;
	}
}

static void add_pus(const struct division *d, struct pu_range pus, hwloc_bitmap_t mask)
{
	for (unsigned pu = pus.lo; pu < pus.hi; pu++)
		hwloc_bitmap_or(mask, mask, d->p->pu[pu]->cpuset);
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
	for (unsigned i = 0; d->n >= s->ntasks && i < s->ntasks; i++) {
		struct pu_range mine = pu_range_share(d->n, s->ntasks, i);

		for (unsigned o = mine.lo; o < mine.hi; o++)
			add_pus(d, (struct pu_range){ d->object[o].lo,
				min_of(d->object[o].hi, d->object[o].lo + d->smt) }, masks[i]);
	}
	if (d->n < s->ntasks)
		good = divide_objects(d, s->ntasks, masks);
	for (unsigned i = 0; i < s->ntasks; i++)
		good = good && (unsigned) hwloc_bitmap_weight(masks[i]) >= min_of(cpus, pus / s->ntasks);
	/* All PUs in tree order, where objects would leave a task with too few. */
	for (unsigned i = 0; pus >= s->ntasks && !good && i < s->ntasks; i++) {
		struct pu_range mine = pu_range_share(pus, s->ntasks, i);

		hwloc_bitmap_zero(masks[i]);
		add_pus(d, (struct pu_range){ s->pus.lo + mine.lo, s->pus.lo + mine.hi }, masks[i]);
	}
}

static int place_mem(const struct pu_tree *p, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	static const struct bind_request compact_numa = { .place = PLACE_COMPACT, .level = "numa" };
	struct division d = { .p = p };
	struct numa_share *s = NULL;
	struct pu_range *domain;
	bool fit = true;
	unsigned n;
	int rc = 0;

	if (!(domain = pu_tree_domains(p, "numa", &n, e)))
		return -1;
	s = calloc(n, sizeof(*s));
	d.object = calloc(p->n + p->npus, sizeof(*d.object));
	if (!s || !d.object) {
		rc = err_set(e, "out of memory");
		goto end;
	}
	for (unsigned i = 0; i < n; i++)
		s[i].pus = domain[i];
	if (ntasks < n)
		n = join_domains(s, n, p->npus, ntasks, cpus);
	else
		apportion(s, n, p->npus, ntasks, cpus ? cpus : 1);
	for (unsigned i = 0; i < n; i++)
		fit = fit && (unsigned long long) s[i].ntasks * cpus <= pu_range_size(s[i].pus);
	if (!fit && (unsigned long long) ntasks * cpus <= p->npus)
		rc = place_grid(p, &compact_numa, ntasks, cpus, masks, e);
	else
		for (unsigned i = 0; i < n; masks += s[i++].ntasks)
			share_out(&d, &s[i], cpus, masks);
end:
	free(domain);
	free(s);
	free(d.object);
	return rc;
}

static int place_on(const struct pu_tree *p, const struct bind_request *r, unsigned ntasks, unsigned cpus,
	hwloc_bitmap_t *masks, struct err *e)
{
	if (cpus > p->npus)
		cpus = p->npus;
	if (!p->npus || !ntasks)
		return err_set(e, "cannot place %u task%s on %u PU%s", ntasks, ntasks == 1 ? "" : "s", p->npus,
			       p->npus == 1 ? "" : "s");
	if (r->place == PLACE_MEM)
		return place_mem(p, ntasks, cpus, masks, e);
	return place_grid(p, r, ntasks, cpus ? cpus : 1, masks, e);
}

/* The cores of one kind, and the tasks on them. */
struct kind_share {
	struct pu_tree tree;
	unsigned ntasks;
};

/* Tasks that share out all cores: in proportion to the cores of each kind. The number that find no place. */
static unsigned apportion_all(struct kind_share *s, unsigned n, unsigned ntasks)
{
	unsigned long long cores = 0, all = ntasks;

	for (unsigned i = 0; i < n; i++)
		cores += s[i].tree.ncores;
	for (; ntasks; ntasks--) {
		long long most = LLONG_MIN;
		unsigned best = n;

		for (unsigned i = 0; i < n; i++) {
			long long deficit = (long long) (s[i].tree.ncores * all) - (long long) (s[i].ntasks * cores);

			if (s[i].ntasks < s[i].tree.npus && deficit > most)
				best = i, most = deficit;
		}
		if (best == n)
			return ntasks;
		s[best].ntasks++;
	}
	return 0;
}

/*
 * Tasks of whole cores first, on the most performant kind as many as it holds; then those that need its SMT siblings.
 * The number that find no place.
 */
static unsigned apportion_cpus(struct kind_share *s, unsigned n, unsigned ntasks, unsigned cpus)
{
	for (unsigned i = 0; i < n; i++) {
		s[i].ntasks = min_of(ntasks, s[i].tree.ncores / cpus);
		ntasks -= s[i].ntasks;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned more = min_of(ntasks, s[i].tree.npus / cpus - s[i].ntasks);

		s[i].ntasks += more;
		ntasks -= more;
	}
	return ntasks;
}

/* 1: done, no task has cores of two kinds; 0: they would not hold all tasks; -1: an error. */
static int place_on_kinds(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, bool whole,
	hwloc_bitmap_t *masks, struct err *e)
{
	struct kind_share s[CORE_KINDS_MAX] = {0};
	hwloc_bitmap_t sets[CORE_KINDS_MAX];
	unsigned n = core_kind_sets(t, sets), made = 0, left = ntasks;
	int rc = 0;

	while (!rc && made < n) {
		rc = pu_tree_new(t, sets[made], whole, &s[made].tree, e);
		made += !rc;
	}
	if (!rc && n)
		left = r->place == PLACE_MEM && !cpus ? apportion_all(s, n, ntasks) :
		       apportion_cpus(s, n, ntasks, cpus ? cpus : 1);
	if (!rc && n && !left) {
		rc = 1;
		for (unsigned i = 0; rc > 0 && i < n; masks += s[i++].ntasks)
			if (s[i].ntasks && place_on(&s[i].tree, r, s[i].ntasks, cpus, masks, e))
				rc = -1;
	}
	for (unsigned i = 0; i < made; i++)
		pu_tree_free(&s[i].tree);
	for (unsigned i = 0; i < n; i++)
		hwloc_bitmap_free(sets[i]);
	return rc;
}

int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, bool whole,
	hwloc_bitmap_t *masks, struct err *e)
{
	struct pu_tree p;
	int rc = place_on_kinds(t, r, ntasks, cpus, whole, masks, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	if (pu_tree_new(t, NULL, whole, &p, e))
		return -1;
	rc = place_on(&p, r, ntasks, cpus, masks, e);
	pu_tree_free(&p);
	return rc;
}
