/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/gpu.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bind/nic.h"
#include "bind/place_grid.h"

/* --- the transportation problem --- */

/* What a source can send or a sink can take: `base` units for nothing, and some more that are dear. */
struct flow_end {
	unsigned base, more;
	unsigned used;
};

#define DEAR (1LL << 48)	/* more than all distances together, less than LLONG_MAX / 256 */
#define NEVER LLONG_MAX

struct flow {
	unsigned n, sinks;		/* sources and sinks */
	struct flow_end *source, *sink;
	const unsigned long *cost;	/* [sink * n + source] */
	unsigned *units;		/* [sink * n + source] */
	long long *far;			/* of the search: to sources, then sinks */
	int *from;
};

static long long end_cost(const struct flow_end *x)
{
	return x->used < x->base ? 0 : x->used < x->base + x->more ? DEAR : NEVER;
}

/* One arc of the search; true if it is a shorter way. */
static bool relax(struct flow *f, unsigned from, unsigned to, long long cost)
{
	if (f->far[from] == NEVER || f->far[from] + cost >= f->far[to])
		return false;
	f->far[to] = f->far[from] + cost;
	f->from[to] = from;
	return true;
}

/* Bellman and Ford's: units can be taken back. */
static void find_ways(struct flow *f)
{
	bool changed = true;

	for (unsigned i = 0; i < f->n + f->sinks; i++) {
		f->far[i] = i < f->n ? end_cost(&f->source[i]) : NEVER;
		f->from[i] = -1;
	}
	while (changed) {
		changed = false;
		for (unsigned to = 0; to < f->sinks; to++)
			for (unsigned i = 0; i < f->n; i++) {
				unsigned long cost = f->cost[to * f->n + i];

				changed |= relax(f, i, f->n + to, cost);
				if (f->units[to * f->n + i])
					changed |= relax(f, f->n + to, i, -(long long) cost);
			}
	}
}

static int best_sink(const struct flow *f)
{
	long long least = NEVER;
	int best = -1;

	for (unsigned to = 0; to < f->sinks; to++) {
		long long end = end_cost(&f->sink[to]), far = f->far[f->n + to];

		if (end == NEVER || far == NEVER || far + end >= least)
			continue;
		least = far + end;
		best = to;
	}
	return best;
}

/* Send one more unit. False if there is no way. */
static bool send_unit(struct flow *f)
{
	int at;

	find_ways(f);
	if ((at = best_sink(f)) < 0)
		return false;
	f->sink[at].used++;
	for (at += f->n; f->from[at] >= 0; at = f->from[at]) {
		int before = f->from[at];

		if (at >= (int) f->n)
			f->units[(at - f->n) * f->n + before]++;
		else
			f->units[(before - f->n) * f->n + at]--;
	}
	f->source[at].used++;
	return true;
}

/* The cost of sending so many, the dear units not counted; ULLONG_MAX: not possible. */
static unsigned long long flow_run(struct flow *f, unsigned total)
{
	unsigned long long sum = 0;

	memset(f->units, 0, (size_t) f->n * f->sinks * sizeof(*f->units));
	for (unsigned i = 0; i < f->n; i++)
		f->source[i].used = 0;
	for (unsigned i = 0; i < f->sinks; i++)
		f->sink[i].used = 0;
	while (total--)
		if (!send_unit(f))
			return ULLONG_MAX;
	for (size_t i = 0; i < (size_t) f->n * f->sinks; i++)
		sum += (unsigned long long) f->units[i] * f->cost[i];
	return sum;
}

/* --- slots that are equally far from every GPU --- */

struct matching {
	const struct gpu_match *m;
	unsigned *class_of;		/* of each slot */
	unsigned *first, *room;		/* of each class: its first slot; tasks that it has room for */
	unsigned long *cost;		/* [class * ngpus + gpu] */
	unsigned *tasks;		/* of each class */
	struct flow f;
	unsigned ways;
	unsigned long long best;
	unsigned *best_tasks, *best_units;
};

static unsigned find_classes(struct matching *x)
{
	const struct gpu_match *m = x->m;
	size_t row = m->ngpus * sizeof(*m->distance);
	unsigned n = 0;

	for (unsigned s = 0; s < m->nslots; s++) {
		const unsigned long *distance = m->distance + (size_t) s * m->ngpus;
		unsigned c = 0;

		while (c < n && memcmp(distance, x->cost + (size_t) c * m->ngpus, row))
			c++;
		if (c == n) {
			memcpy(x->cost + (size_t) c * m->ngpus, distance, row);
			x->first[c] = s;
			n++;
		}
		x->class_of[s] = c;
		x->room[c] += m->room;
	}
	return n;
}

/* --- one GPU a task --- */

static void share_gpus(struct matching *x)
{
	const struct gpu_match *m = x->m;

	for (unsigned i = 0; i < m->ngpus; i++)
		x->f.source[i] = (struct flow_end){ m->ntasks / m->ngpus, m->ntasks % m->ngpus ? 1 : 0, 0 };
	for (unsigned c = 0; c < x->f.sinks; c++)
		x->f.sink[c] = (struct flow_end){ x->room[c], 0, 0 };
	x->best = flow_run(&x->f, m->ntasks);
}

/* In the order of GPUs. */
static void share_out(const struct matching *x, unsigned *class, uint64_t *gpus)
{
	unsigned task = 0;

	for (unsigned i = 0; i < x->m->ngpus; i++)
		for (unsigned c = 0; c < x->f.sinks; c++)
			for (unsigned k = x->f.units[c * x->m->ngpus + i]; k > 0 && task < x->m->ntasks; k--) {
				class[task] = c;
				gpus[task++] = UINT64_C(1) << i;
			}
}

/* --- several GPUs a task --- */

/* Every way to distribute the tasks that are left over the classes from c on. */
static void try_ways(struct matching *x, unsigned c, unsigned left)
{
	unsigned each = x->m->ngpus / x->m->ntasks, more = x->m->ngpus % x->m->ntasks ? 1 : 0;
	unsigned most = left < x->room[c] ? left : x->room[c];
	unsigned long long sum;

	if (c + 1 < x->f.sinks) {
		for (unsigned n = most + 1; n-- > 0 && x->ways < GPU_MATCH_WAYS;) {
			x->tasks[c] = n;
			try_ways(x, c + 1, left - n);
		}
		return;
	}
	if (most < left)
		return;
	x->tasks[c] = left;
	x->ways++;
	for (unsigned i = 0; i < x->f.sinks; i++)
		x->f.sink[i] = (struct flow_end){ each * x->tasks[i], more * x->tasks[i], 0 };
	sum = flow_run(&x->f, x->m->ngpus);
	if (sum >= x->best)
		return;
	x->best = sum;
	memcpy(x->best_tasks, x->tasks, x->f.sinks * sizeof(*x->tasks));
	memcpy(x->best_units, x->f.units, (size_t) x->f.sinks * x->f.n * sizeof(*x->best_units));
}

static void divide_gpus(struct matching *x)
{
	for (unsigned i = 0; i < x->m->ngpus; i++)
		x->f.source[i] = (struct flow_end){ 1, 0, 0 };
	x->best = ULLONG_MAX;
	try_ways(x, 0, x->m->ntasks);
}

/* The GPUs of a class among its tasks, in order; the first have one more. */
static unsigned divide_class(const struct matching *x, unsigned c, unsigned task, unsigned *class, uint64_t *gpus)
{
	const unsigned *units = x->best_units + (size_t) c * x->m->ngpus;
	unsigned left = x->best_tasks[c], n = 0, gpu = 0;

	for (unsigned i = 0; i < x->m->ngpus; i++)
		n += units[i];
	for (; left; left--, task++) {
		unsigned take = (n + left - 1) / left;

		class[task] = c;
		gpus[task] = 0;
		for (n -= take; take && gpu < x->m->ngpus; gpu++)
			if (units[gpu]) {
				gpus[task] |= UINT64_C(1) << gpu;
				take--;
			}
	}
	return task;
}

static void sort_by_first_gpu(unsigned n, unsigned *class, uint64_t *gpus)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0 && __builtin_ctzll(gpus[k]) < __builtin_ctzll(gpus[k - 1]); k--) {
			uint64_t g = gpus[k];
			unsigned c = class[k];

			gpus[k] = gpus[k - 1], gpus[k - 1] = g;
			class[k] = class[k - 1], class[k - 1] = c;
		}
}

static void divide_out(const struct matching *x, unsigned *class, uint64_t *gpus)
{
	unsigned task = 0;

	for (unsigned c = 0; c < x->f.sinks; c++)
		task = divide_class(x, c, task, class, gpus);
	sort_by_first_gpu(x->m->ntasks, class, gpus);
}

/* --- slots --- */

/* The tasks of a class take its slots in order, each slot once before one is shared. slot: their classes before. */
static void take_slots(struct matching *x, unsigned *slot)
{
	for (unsigned c = 0; c < x->f.sinks; c++)
		x->tasks[c] = x->first[c];
	for (unsigned task = 0; task < x->m->ntasks; task++) {
		unsigned c = slot[task], s = x->tasks[c];

		slot[task] = s;
		do
			s = s + 1 < x->m->nslots ? s + 1 : 0;
		while (x->class_of[s] != c);
		x->tasks[c] = s;
	}
}

static void matching_free(struct matching *x)
{
	free(x->class_of);
	free(x->first);
	free(x->room);
	free(x->cost);
	free(x->tasks);
	free(x->best_tasks);
	free(x->best_units);
	free(x->f.source);
	free(x->f.sink);
	free(x->f.units);
	free(x->f.far);
	free(x->f.from);
}

static int matching_make(struct matching *x, struct err *e)
{
	size_t slots = x->m->nslots, gpus = x->m->ngpus;

	x->class_of = calloc(slots, sizeof(*x->class_of));
	x->first = calloc(slots, sizeof(*x->first));
	x->room = calloc(slots, sizeof(*x->room));
	x->tasks = calloc(slots, sizeof(*x->tasks));
	x->best_tasks = calloc(slots, sizeof(*x->best_tasks));
	x->cost = calloc(slots * gpus, sizeof(*x->cost));
	x->best_units = calloc(slots * gpus, sizeof(*x->best_units));
	x->f.units = calloc(slots * gpus, sizeof(*x->f.units));
	x->f.source = calloc(gpus, sizeof(*x->f.source));
	x->f.sink = calloc(slots, sizeof(*x->f.sink));
	x->f.far = calloc(slots + gpus, sizeof(*x->f.far));
	x->f.from = calloc(slots + gpus, sizeof(*x->f.from));
	return x->class_of && x->first && x->room && x->tasks && x->best_tasks && x->cost && x->best_units &&
	       x->f.units && x->f.source && x->f.sink && x->f.far && x->f.from ? 0 : err_set(e, "out of memory");
}

int gpu_match(const struct gpu_match *m, unsigned *slot, uint64_t *gpus, unsigned long long *sum, struct err *e)
{
	struct matching x = { .m = m };
	int rc = m->ngpus && m->ngpus <= GPU_MATCH_GPUS && (size_t) m->room * m->nslots >= m->ntasks ?
		matching_make(&x, e) : err_set(e, "%u tasks, %u GPUs and %u places for tasks", m->ntasks, m->ngpus,
					       m->nslots);

	if (!rc) {
		x.f.n = m->ngpus;
		x.f.sinks = find_classes(&x);
		x.f.cost = x.cost;
		if (m->ntasks >= m->ngpus) {
			share_gpus(&x);
			share_out(&x, slot, gpus);
		} else {
			divide_gpus(&x);
			divide_out(&x, slot, gpus);
		}
		take_slots(&x, slot);
		*sum = x.best;
	}
	matching_free(&x);
	return rc;
}

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
		err_set(e, "cannot place %u task%s on %u PU%s near %u GPU%s", how->ntasks, how->ntasks == 1 ? "" : "s",
			x.tree.npus, x.tree.npus == 1 ? "" : "s", how->ngpus, how->ngpus == 1 ? "" : "s");
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
