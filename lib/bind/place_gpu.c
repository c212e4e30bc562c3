/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/gpu.h"

#include "base/std.h"
#include "bind/nic.h"
#include "bind/place_grid.h"

/* --- which task gets which GPUs: gpu_match --- */

/*
 * A transportation problem from the GPUs to classes of slots, which are equally far from every GPU. Each end has room
 * for `base` units at no cost of its own, and for some more that are used only where there is no other way.
 */
struct flow_end {
	unsigned base, more;
	unsigned used;
};

#define LAST_RESORT (1LL << 48)	/* more than all distances together, less than LLONG_MAX / 256 */
#define NEVER LLONG_MAX

struct matching {
	const struct gpu_match *m;
	struct flow_end gpu[GPU_MATCH_GPUS];
	struct slot_class {
		unsigned first, room;	/* its first slot; tasks that it has room for */
		unsigned tasks, best_tasks;
		unsigned next;		/* the slot of its next task */
		struct flow_end end;
	} *class;
	unsigned nclasses;
	unsigned *class_of;		/* of each slot */
	unsigned long *cost;		/* [class * ngpus + gpu] */
	unsigned *units, *best_units;	/* [class * ngpus + gpu] */
	long long *far;			/* of the search for a way: to GPUs, then classes */
	int *from;
	unsigned ways;
	unsigned long long best;
};

static long long end_cost(const struct flow_end *x)
{
	return x->used < x->base ? 0 : x->used < x->base + x->more ? LAST_RESORT : NEVER;
}

/* One arc of the search; true if it is a shorter way. */
static bool relax(struct matching *x, unsigned from, unsigned to, long long cost)
{
	if (x->far[from] == NEVER || x->far[from] + cost >= x->far[to])
		return false;
	x->far[to] = x->far[from] + cost;
	x->from[to] = from;
	return true;
}

/*
 * Send one more unit by the shortest way, found by Bellman and Ford's algorithm since units can be taken back. False
 * if there is no way.
 */
static bool send_unit(struct matching *x)
{
	unsigned n = x->m->ngpus;
	long long least = NEVER;
	bool changed = true;
	int at = -1;

	for (unsigned i = 0; i < n + x->nclasses; i++) {
		x->far[i] = i < n ? end_cost(&x->gpu[i]) : NEVER;
		x->from[i] = -1;
	}
	while (changed) {
		changed = false;
		for (unsigned c = 0; c < x->nclasses; c++)
			for (unsigned i = 0; i < n; i++) {
				long long cost = x->cost[c * n + i];

				changed |= relax(x, i, n + c, cost);
				if (x->units[c * n + i])
					changed |= relax(x, n + c, i, -cost);
			}
	}
	for (unsigned c = 0; c < x->nclasses; c++) {
		long long end = end_cost(&x->class[c].end), far = x->far[n + c];

		if (end == NEVER || far == NEVER || far + end >= least)
			continue;
		least = far + end;
		at = n + c;
	}
	if (at < 0)
		return false;
	x->class[at - n].end.used++;
	for (int before; (before = x->from[at]) >= 0; at = before) {
		if (at >= (int) n)
			x->units[(at - n) * n + before]++;
		else
			x->units[(before - n) * n + at]--;
	}
	x->gpu[at].used++;
	return true;
}

/* The cost of sending so many between ends that are not used yet, in distances alone; ULLONG_MAX: not possible. */
static unsigned long long send_units(struct matching *x, unsigned total)
{
	unsigned long long sum = 0;
	size_t arcs = (size_t) x->m->ngpus * x->nclasses;

	memset(x->units, 0, arcs * sizeof(*x->units));
	for (unsigned i = 0; i < x->m->ngpus; i++)
		x->gpu[i].used = 0;
	while (total--)
		if (!send_unit(x))
			return ULLONG_MAX;
	for (size_t i = 0; i < arcs; i++)
		sum += (unsigned long long) x->units[i] * x->cost[i];
	return sum;
}

static void classes_find(struct matching *x)
{
	const struct gpu_match *m = x->m;
	size_t row = m->ngpus * sizeof(*m->distance);

	for (unsigned s = 0; s < m->nslots; s++) {
		const unsigned long *distance = m->distance + (size_t) s * m->ngpus;
		unsigned c = 0;

		while (c < x->nclasses && memcmp(distance, x->cost + (size_t) c * m->ngpus, row))
			c++;
		if (c == x->nclasses) {
			memcpy(x->cost + (size_t) c * m->ngpus, distance, row);
			x->class[c].first = x->class[c].next = s;
			x->nclasses++;
		}
		x->class_of[s] = c;
		x->class[c].room += m->room;
	}
}

/* As many tasks as GPUs or more: one GPU each. Tasks in the order of GPUs; class: of each task. */
static void match_one_each(struct matching *x, unsigned *class, uint64_t *gpus)
{
	const struct gpu_match *m = x->m;
	unsigned task = 0;

	for (unsigned i = 0; i < m->ngpus; i++)
		x->gpu[i] = (struct flow_end){ m->ntasks / m->ngpus, m->ntasks % m->ngpus ? 1 : 0, 0 };
	for (unsigned c = 0; c < x->nclasses; c++)
		x->class[c].end = (struct flow_end){ x->class[c].room, 0, 0 };
	x->best = send_units(x, m->ntasks);
	for (unsigned i = 0; i < m->ngpus; i++)
		for (unsigned c = 0; c < x->nclasses; c++)
			for (unsigned k = x->units[c * m->ngpus + i]; k > 0 && task < m->ntasks; k--) {
				class[task] = c;
				gpus[task++] = UINT64_C(1) << i;
			}
}

/* Every way to distribute the tasks that are left over the classes from c on. */
static void try_ways(struct matching *x, unsigned c, unsigned left)
{
	unsigned each = x->m->ngpus / x->m->ntasks, more = x->m->ngpus % x->m->ntasks ? 1 : 0;
	unsigned most = left < x->class[c].room ? left : x->class[c].room;
	unsigned long long sum;

	if (c + 1 < x->nclasses) {
		for (unsigned n = most + 1; n-- > 0 && x->ways < GPU_MATCH_WAYS;) {
			x->class[c].tasks = n;
			try_ways(x, c + 1, left - n);
		}
		return;
	}
	if (most < left)
		return;
	x->class[c].tasks = left;
	x->ways++;
	for (struct slot_class *k = x->class; k < x->class + x->nclasses; k++)
		k->end = (struct flow_end){ each * k->tasks, more * k->tasks, 0 };
	sum = send_units(x, x->m->ngpus);
	if (sum >= x->best)
		return;
	x->best = sum;
	for (struct slot_class *k = x->class; k < x->class + x->nclasses; k++)
		k->best_tasks = k->tasks;
	memcpy(x->best_units, x->units, (size_t) x->nclasses * x->m->ngpus * sizeof(*x->best_units));
}

/*
 * Fewer tasks than GPUs: all GPUs are divided. Those of a class go to its tasks in order, the first of which have one
 * more; then tasks are numbered in the order of their first GPUs.
 */
static void match_several_each(struct matching *x, unsigned *class, uint64_t *gpus)
{
	unsigned ngpus = x->m->ngpus, task = 0;

	for (unsigned i = 0; i < ngpus; i++)
		x->gpu[i] = (struct flow_end){ 1, 0, 0 };
	x->best = ULLONG_MAX;
	try_ways(x, 0, x->m->ntasks);
	for (unsigned c = 0; c < x->nclasses; c++) {
		const unsigned *units = x->best_units + (size_t) c * ngpus;
		unsigned n = 0, gpu = 0;

		for (unsigned i = 0; i < ngpus; i++)
			n += units[i];
		for (unsigned left = x->class[c].best_tasks; left; left--, task++) {
			unsigned share = (n + left - 1) / left;

			class[task] = c;
			gpus[task] = 0;
			for (n -= share; share && gpu < ngpus; gpu++)
				if (units[gpu]) {
					gpus[task] |= UINT64_C(1) << gpu;
					share--;
				}
		}
	}
	for (unsigned i = 1; i < x->m->ntasks; i++)
		for (unsigned k = i; k > 0 && __builtin_ctzll(gpus[k]) < __builtin_ctzll(gpus[k - 1]); k--) {
			uint64_t g = gpus[k];
			unsigned c = class[k];

			gpus[k] = gpus[k - 1], gpus[k - 1] = g;
			class[k] = class[k - 1], class[k - 1] = c;
		}
}

int gpu_match(const struct gpu_match *m, unsigned *slot, uint64_t *gpus, unsigned long long *sum, struct err *e)
{
	size_t arcs = (size_t) m->nslots * m->ngpus, ends = (size_t) m->nslots + m->ngpus;
	struct matching x = { .m = m };
	int rc = -1;

	if (!m->ngpus || m->ngpus > GPU_MATCH_GPUS || (size_t) m->room * m->nslots < m->ntasks)
		return err_set(e, "cannot match %u task%s with %u GPU%s and %u place%s for tasks", m->ntasks,
			       m->ntasks == 1 ? "" : "s", m->ngpus, m->ngpus == 1 ? "" : "s", m->nslots,
			       m->nslots == 1 ? "" : "s");
	x.class = calloc(m->nslots, sizeof(*x.class));
	x.class_of = calloc(m->nslots, sizeof(*x.class_of));
	x.cost = calloc(arcs, sizeof(*x.cost));
	x.units = calloc(arcs, sizeof(*x.units));
	x.best_units = calloc(arcs, sizeof(*x.best_units));
	x.far = calloc(ends, sizeof(*x.far));
	x.from = calloc(ends, sizeof(*x.from));
	if (!x.class || !x.class_of || !x.cost || !x.units || !x.best_units || !x.far || !x.from) {
		err_set(e, "out of memory");
	} else {
		classes_find(&x);
		(m->ntasks < m->ngpus ? match_several_each : match_one_each)(&x, slot, gpus);
		/* The tasks of a class take its slots in order, each slot once before one is shared. */
		for (unsigned task = 0; task < m->ntasks; task++) {
			struct slot_class *c = &x.class[slot[task]];
			unsigned class = slot[task], s = c->next;

			slot[task] = s;
			do
				s = s + 1 < m->nslots ? s + 1 : 0;
			while (x.class_of[s] != class);
			c->next = s;
		}
		*sum = x.best;
		rc = 0;
	}
	free(x.class);
	free(x.class_of);
	free(x.cost);
	free(x.units);
	free(x.best_units);
	free(x.far);
	free(x.from);
	return rc;
}

/* --- which task gets which PUs --- */

#define DISTANCE_MAX (1ul << 20)	/* firmware tells 10 to 255; what is unknown counts as this */
#define TAKEN ULONG_MAX

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

/*
 * The sum of the distances from the slot, by its farthest NUMA node, to each of these GPUs; of slots that are equally
 * far that with fewer PUs there is nearer. A task whose GPUs are fixed has a group that counts as one. The distances of
 * 65,536 tasks together are less than LAST_RESORT.
 */
static unsigned long slot_distance(const struct gpu_placing *x, hwloc_const_bitmap_t slot, uint64_t gpus)
{
	unsigned long sum = 0;
	unsigned pu;

	for (unsigned gpu = 0; gpu < x->how->ngpus; gpu++) {
		unsigned long most = 0, all = 0;

		for (unsigned i = 0; gpus >> gpu & 1 && i < x->far.domains.n; i++) {
			hwloc_const_bitmap_t domain = x->far.domains.node[i]->cpuset;
			unsigned long far = nic_distance(&x->far, gpu, domain), here = 0;

			hwloc_bitmap_foreach_begin(pu, slot)
				here += hwloc_bitmap_isset(domain, pu);
			hwloc_bitmap_foreach_end();
			far = !here ? 0 : far < DISTANCE_MAX ? far : DISTANCE_MAX;
			most = far > most ? far : most;
			all += far * here;
		}
		sum += most ? most << 8 | all * 255 / (most * hwloc_bitmap_weight(slot)) : 0;
	}
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

/* The nearest core that is not taken, of those near a GPU or, with NULL, of all. p->ncores: none is left. */
static unsigned nearest_core(const struct pu_tree *p, const unsigned long *far, hwloc_const_bitmap_t near)
{
	unsigned best = p->ncores;

	for (unsigned c = 0; c < p->ncores; c++) {
		bool is_near = !near;

		for (unsigned pu = p->core[c].lo; !is_near && pu < p->core[c].hi; pu++)
			is_near = hwloc_bitmap_intersects(p->pu[pu]->cpuset, near);
		if (is_near && far[c] != TAKEN && (best == p->ncores || far[c] < far[best]))
			best = c;
	}
	return best;
}

/* The CPUs that a core counts as, at most so many. */
static unsigned core_cpus(const struct pu_tree *p, unsigned core, unsigned most)
{
	return pu_range_size(p->core[core]) < most ? pu_range_size(p->core[core]) : most;
}

static void core_add(const struct pu_tree *p, unsigned core, hwloc_bitmap_t mask)
{
	for (unsigned pu = p->core[core].lo; pu < p->core[core].hi; pu++)
		hwloc_bitmap_or(mask, mask, p->pu[pu]->cpuset);
}

/*
 * A task alone has all GPUs, which may be anywhere: each in turn gives it a core near it, until it has its CPUs, or all
 * such cores. Then follow the nearest others, for the rest of its CPUs or where no core is near.
 */
static int place_alone(struct gpu_placing *x, hwloc_bitmap_t mask, uint64_t *gpus, struct err *e)
{
	unsigned cpus = x->how->cpus, most = cpus ? cpus : UINT_MAX, least = cpus ? cpus : 1;
	unsigned n = x->how->ngpus, each = 0, room, got = 0, core;
	const struct pu_tree *p = &x->tree;
	unsigned long *far = calloc(p->ncores + 1, sizeof(*far));	/* of each core; TAKEN */
	hwloc_bitmap_t pus = hwloc_bitmap_alloc();

	*gpus = x->how->fixed ? *x->how->fixed : UINT64_MAX >> (64 - n);
	if (!far || !pus) {
		free(far);
		hwloc_bitmap_free(pus);
		return err_set(e, "out of memory");
	}
	for (unsigned c = 0; c < p->ncores; c++) {
		hwloc_bitmap_zero(pus);
		core_add(p, c, pus);
		far[c] = slot_distance(x, pus, *gpus);
	}
	/* A whole core for each CPU, or where these are too few for every two, and so on. */
	do {
		each++;
		room = 0;
		for (unsigned c = 0; c < p->ncores; c++)
			room += core_cpus(p, c, each);
	} while (room < most && room < p->npus);
	for (unsigned turn = 0, idle = 0; got < most && idle < n; turn++) {
		core = *gpus >> turn % n & 1 ? nearest_core(p, far, x->how->near[turn % n]) : p->ncores;
		idle = core < p->ncores ? 0 : idle + 1;
		if (core == p->ncores)
			continue;
		core_add(p, core, mask);
		got += core_cpus(p, core, each);
		far[core] = TAKEN;
	}
	while (got < least && (core = nearest_core(p, far, NULL)) < p->ncores) {
		core_add(p, core, mask);
		got += core_cpus(p, core, each);
		far[core] = TAKEN;
	}
	hwloc_bitmap_free(pus);
	free(far);
	return 0;
}

int gpu_place(const struct gpu_places *how, hwloc_bitmap_t *masks, uint64_t *gpus, struct err *e)
{
	struct gpu_placing x = { .how = how };
	int rc = -1;

	if (pu_tree_new(how->topology, NULL, how->whole, &x.tree, e))
		return -1;
	if (!x.tree.npus || !how->ntasks || !how->ngpus)
		err_set(e, "cannot place %u task%s on %u PU%s near %u GPU%s", how->ntasks, how->ntasks == 1 ? "" : "s",
			x.tree.npus, x.tree.npus == 1 ? "" : "s", how->ngpus, how->ngpus == 1 ? "" : "s");
	else if (!(x.devices.nic = calloc(how->ngpus, sizeof(*x.devices.nic))))
		err_set(e, "out of memory");
	else
		for (; x.devices.n < how->ngpus; x.devices.n++)
			x.devices.nic[x.devices.n].near = how->near[x.devices.n];
	if (x.devices.n && !(rc = nic_distances_find(how->node, &x.devices, &x.far, e)))
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
