/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "step/topology.h"
#include "task.h"

/* Slurm's binding of the node's tasks, as far as one of them can see it: the list of all, or only its own affinity. */
enum { MAX_LIST = 1 << 18 };

/*
 * As Slurm parses them (src/plugins/task/affinity/affinity.c, get_cpuset): hexadecimal masks, or decimal or
 * hexadecimal CPU numbers.
 */
static int read_mask(const char *text, hwloc_bitmap_t out)
{
	return hwloc_bitmap_taskset_sscanf(out, text);
}

static int read_cpu(const char *text, hwloc_bitmap_t out)
{
	char *end;
	unsigned long cpu = strtoul(text, &end, strncmp(text, "0x", 2) ? 10 : 16);

	return *end || end == text || cpu >= 1 << 16 || hwloc_bitmap_only(out, cpu) ? -1 : 0;
}

static const struct bind_type {
	const char *type;		/* prefix of SLURM_CPU_BIND_TYPE */
	int (*read)(const char *text, hwloc_bitmap_t out);
} bind_types[] = {
	{ "mask_cpu", read_mask },
	{ "map_cpu", read_cpu },
};

static const struct bind_type *find_type(const char *type)
{
	for (size_t i = 0; i < sizeof(bind_types) / sizeof(*bind_types); i++)
		if (!strncmp(type, bind_types[i].type, strlen(bind_types[i].type)))
			return &bind_types[i];
	return NULL;
}

/* A list shorter than the number of tasks is repeated. */
static int read_list(const struct bind_type *k, char *list, struct task *t)
{
	unsigned n = 0;
	char *save = NULL;

	for (char *one = strtok_r(list, ",", &save); one && n < t->nlocal; one = strtok_r(NULL, ",", &save))
		if (k->read(one, t->masks[n++]))
			return -1;
	if (!n)
		return -1;
	for (unsigned i = n; i < t->nlocal; i++)
		if (hwloc_bitmap_copy(t->masks[i], t->masks[i % n]))
			return -1;
	return 0;
}

/* The list is what was requested; not every task plugin applies it. */
static bool is_applied(const struct task *t)
{
	hwloc_bitmap_t now = hwloc_bitmap_alloc();
	bool same = now && !affinity_get(now, NULL) && hwloc_bitmap_isequal(now, t->masks[t->local]);

	hwloc_bitmap_free(now);
	return same;
}

static int from_list(struct task *t)
{
	char type[256] = "", *list = malloc(MAX_LIST);
	const struct bind_type *k;
	int rc = -1;

	spank_getenv(t->sp, "SLURM_CPU_BIND_TYPE", type, sizeof(type));
	k = find_type(type);
	if (list && k && !spank_getenv(t->sp, "SLURM_CPU_BIND_LIST", list, MAX_LIST))
		rc = read_list(k, list, t);
	free(list);
	return rc || !is_applied(t) ? -1 : 0;
}

/* Nothing is known of the other tasks: assume that they may run wherever this one may. */
static int from_affinity(struct task *t, struct err *e)
{
	if (affinity_get(t->masks[0], e))
		return -1;
	for (unsigned i = 1; i < t->nlocal; i++)
		if (hwloc_bitmap_copy(t->masks[i], t->masks[0]))
			return err_set(e, "out of memory");
	return 0;
}

/* Without a binding a task may use all CPUs of the node, including those outside the step. */
static int restrict_to_step(struct task *t, struct err *e)
{
	hwloc_const_bitmap_t own = hwloc_topology_get_topology_cpuset(t->topology);

	for (unsigned i = 0; i < t->nlocal; i++) {
		if (!hwloc_bitmap_intersects(t->masks[i], own))
			return err_set(e, "Slurm bound local task %u of this node to CPUs outside the step", i);
		hwloc_bitmap_and(t->masks[i], t->masks[i], own);
	}
	return 1;
}

int task_masks_from_slurm(struct task *t, struct err *e)
{
	if (from_list(t) && from_affinity(t, e))
		return -1;
	return restrict_to_step(t, e);
}
