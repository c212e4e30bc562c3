/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "task.h"

/* What Slurm bound the node's tasks to, as each of them can see it: the list for all, or its own affinity. */
enum { MAX_LIST = 1 << 18 };

/* As Slurm reads them (src/plugins/task/affinity/affinity.c, get_cpuset): hexadecimal masks, or CPU numbers of either base. */
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

static const struct kind {
	const char *type;		/* what SLURM_CPU_BIND_TYPE begins with */
	int (*read)(const char *text, hwloc_bitmap_t out);
} kinds[] = {
	{ "mask_cpu", read_mask },
	{ "map_cpu", read_cpu },
};

static const struct kind *find_kind(const char *type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(type, kinds[i].type, strlen(kinds[i].type)))
			return &kinds[i];
	return NULL;
}

/* A list that is shorter than the tasks begins again. */
static int read_list(const struct kind *k, char *list, struct task *t)
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

/* The list says what was asked for, which not every task plugin does. */
static bool is_true(const struct task *t)
{
	hwloc_bitmap_t now = hwloc_bitmap_alloc();
	bool same = now && !affinity_get(now, NULL) && hwloc_bitmap_isequal(now, t->masks[t->local]);

	hwloc_bitmap_free(now);
	return same;
}

static int from_list(struct task *t)
{
	char type[256] = "", *list = malloc(MAX_LIST);
	const struct kind *k;
	int rc = -1;

	spank_getenv(t->sp, "SLURM_CPU_BIND_TYPE", type, sizeof(type));
	k = find_kind(type);
	if (list && k && !spank_getenv(t->sp, "SLURM_CPU_BIND_LIST", list, MAX_LIST))
		rc = read_list(k, list, t);
	free(list);
	return rc || !is_true(t) ? -1 : 0;
}

/* Nothing is told of the others: they may be anywhere that this one may. */
static int from_affinity(struct task *t, struct err *e)
{
	if (affinity_get(t->masks[0], e))
		return -1;
	for (unsigned i = 1; i < t->nlocal; i++)
		if (hwloc_bitmap_copy(t->masks[i], t->masks[0]))
			return err_set(e, "out of memory");
	return 0;
}

/* Where Slurm binds nobody a task may use all CPUs of the node, of which some are not the step's. */
static int keep_own(struct task *t, struct err *e)
{
	hwloc_const_bitmap_t own = hwloc_topology_get_topology_cpuset(t->topology);

	for (unsigned i = 0; i < t->nlocal; i++) {
		if (!hwloc_bitmap_intersects(t->masks[i], own))
			return err_set(e, "Slurm bound task %u of this node to none of the step's CPUs", i);
		hwloc_bitmap_and(t->masks[i], t->masks[i], own);
	}
	return 1;
}

int task_bound(struct task *t, struct err *e)
{
	if (from_list(t) && from_affinity(t, e))
		return -1;
	return keep_own(t, e);
}
