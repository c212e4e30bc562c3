/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "trace/advice_facts.h"

#define OUTSIDE 0.25		/* of a PU's time; what the system does on it is far below */

#define SHARE 64
#define SAY(...) (snprintf(out, size, __VA_ARGS__), true)

/* "core 3", "cores 0-3" */
static void cores_name(hwloc_const_bitmap_t cores, char *out, size_t size)
{
	char list[64];

	hwloc_bitmap_list_snprintf(list, sizeof(list), cores);
	snprintf(out, size, "%s %s", hwloc_bitmap_weight(cores) == 1 ? "core" : "cores", list);
}

/* The first task that is far, NULL: none; share: " (3 of 8 ranks are as far)", or "" of one. */
static const struct trace_task *first_task(const struct trace_tasks *all, bool (*is_far)(const struct trace_task *),
					   char share[static SHARE])
{
	const struct trace_task *first = NULL;
	unsigned n = 0;

	for (const struct trace_task *t = all->list; t < all->list + all->n; t++)
		if (is_far(t)) {
			first = first ? first : t;
			n++;
		}
	*share = '\0';
	if (n > 1)
		snprintf(share, SHARE, " (%u of %u ranks are as far)", n, all->n);
	return first;
}

/* All of its GPUs are far. A task that sees near and far ones may use the near. */
static bool has_far_gpus(const struct trace_task *t)
{
	return strstr(t->gpu, " far") && !strstr(t->gpu, " near");
}

bool advice_far_gpu(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_task *first;
	char cores[96], share[SHARE];

	if (!(first = first_task(f->tasks, has_far_gpus, share)))
		return false;
	cores_name(first->cores, cores, sizeof(cores));
	return SAY("rank %u is on %s and has GPU %.60s%s", first->rank, cores, first->gpu, share);
}

bool advice_lacks_cores(const struct advice_facts *f)
{
	for (unsigned i = 0; i < f->tasks->n; i++)
		if (f->tasks->list[i].lacks_cores)
			return true;
	return false;
}

static bool has_far_nic(const struct trace_task *t)
{
	return *t->nic_far;
}

bool advice_far_nic(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_task *first;
	char cores[96], share[SHARE];

	if (!(first = first_task(f->tasks, has_far_nic, share)))
		return false;
	cores_name(first->cores, cores, sizeof(cores));
	return SAY("rank %u is on %s and uses the far %.80s%s", first->rank, cores, first->nic_far, share);
}

/* The first task with cores of an earlier one's, -1: none; *other is that one. */
static int sharer_find(const struct trace_tasks *all, hwloc_bitmap_t seen, unsigned *other)
{
	for (unsigned i = 0; i < all->n; i++) {
		if (!hwloc_bitmap_intersects(seen, all->list[i].cores)) {
			hwloc_bitmap_or(seen, seen, all->list[i].cores);
			continue;
		}
		for (*other = 0; !hwloc_bitmap_intersects(all->list[*other].cores, all->list[i].cores);)
			++*other;
		return i;
	}
	return -1;
}

/* Cores of the step that no task is bound to. */
static unsigned count_left(const struct trace_tasks *all, hwloc_bitmap_t left)
{
	hwloc_bitmap_copy(left, all->cores);
	for (unsigned i = 0; i < all->n; i++)
		hwloc_bitmap_andnot(left, left, all->list[i].cores);
	return hwloc_bitmap_weight(left);
}

bool advice_shared_cores(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_tasks *all = f->tasks;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	unsigned left = set ? count_left(all, set) : 0, other = 0;
	char cores[96];
	int sharer = -1;

	if (left) {
		hwloc_bitmap_zero(set);
		sharer = sharer_find(all, set, &other);
	}
	if (sharer >= 0) {
		hwloc_bitmap_and(set, all->list[sharer].cores, all->list[other].cores);
		cores_name(set, cores, sizeof(cores));
		snprintf(out, size, "ranks %u and %u are bound to %s, while %u of %d cores have no rank",
			 all->list[other].rank, all->list[sharer].rank, cores, left, hwloc_bitmap_weight(all->cores));
	}
	hwloc_bitmap_free(set);
	return sharer >= 0;
}

bool advice_outside(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *pus = &f->h->levels[trace_head_level(f->h, "PU")];
	const double *rate = f->rate + f->h->events[f->event[BUSY]].column;
	hwloc_bitmap_t bound = hwloc_bitmap_alloc();
	double busiest = 0;
	unsigned n = 0;
	long at = 0;

	for (unsigned t = 0; bound && t < f->tasks->n; t++)
		hwloc_bitmap_or(bound, bound, f->tasks->list[t].pus);
	for (unsigned i = 0; bound && i < pus->n; i++) {
		double busy = rate[i] * 1e-9;

		if (pus->objects[i].os_index < 0 || hwloc_bitmap_isset(bound, pus->objects[i].os_index))
			continue;
		n += busy >= OUTSIDE;
		if (busy > busiest) {
			busiest = busy;
			at = pus->objects[i].os_index;
		}
	}
	hwloc_bitmap_free(bound);
	return n && SAY("%u of %u PUs that no rank is bound to worked, P#%ld for %.0f %% of the time", n, f->h->pus, at,
			100 * busiest);
}

static bool is_bound_far(const struct trace_task *t)
{
	return t->memory && !hwloc_bitmap_iszero(t->memory) && !hwloc_bitmap_iszero(t->numa) &&
		!hwloc_bitmap_intersects(t->memory, t->numa);
}

bool advice_far_policy(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_task *first;
	char numa[64], memory[64], share[SHARE];

	if (!(first = first_task(f->tasks, is_bound_far, share)))
		return false;
	hwloc_bitmap_list_snprintf(numa, sizeof(numa), first->numa);
	hwloc_bitmap_list_snprintf(memory, sizeof(memory), first->memory);
	return SAY("rank %u is at NUMA node %s, and its memory is bound to %s%s", first->rank, numa, memory, share);
}

double advice_free_moves(const struct advice_facts *f)
{
	hwloc_bitmap_t free = hwloc_bitmap_alloc();
	double moves = 0;

	for (unsigned t = 0; free && t < f->tasks->n; t++)
		if (hwloc_bitmap_weight(f->tasks->list[t].cores) > 1)
			hwloc_bitmap_or(free, free, f->tasks->list[t].pus);
	if (free)
		moves = facts_rate(f, MIGRATIONS, free);
	hwloc_bitmap_free(free);
	return moves;
}

int advice_far_task(const struct advice_facts *f, double least, double *part)
{
	int worst = -1;

	if (!f->tasks || !facts_at_pus(f, FAR) || !facts_at_pus(f, NEAR))
		return -1;
	for (unsigned i = 0; i < f->tasks->n; i++) {
		double far = facts_rate(f, FAR, f->tasks->list[i].pus),
		       all = far + facts_rate(f, NEAR, f->tasks->list[i].pus);

		if (all >= least && (worst < 0 || far / all > *part)) {
			worst = i;
			*part = far / all;
		}
	}
	return worst;
}
