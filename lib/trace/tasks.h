/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/err.h"

/*
 * Where the tasks of a step were on a node, and what they had, by the file that the step leaves beside its trace
 * (spank_plugin/step/monitor.c), NODE.tasks. It is JSON, an object a line; the first is about the step:
 *	{"tasks":1,"step":"12.0","node":"cn1","nodes":2,"cores":"0-7","capture":"/home/u/app.mat"}
 * and the others about a task each, with the keys of --topo-report=json and two more:
 *	cores	logical indices of its cores on the whole node
 *	nic_far	the device that its environment names, where another one is near: "mlx5_0 (mlx5_1 is near)"
 * The file may be anybody's. For trace/advice.h and cli/watch/advise.c.
 */
#define TRACE_TASKS_BYTES (64u << 20)	/* of the file */
#define TRACE_TASKS_MAX 65536u
#define TRACE_TASKS_INDEX 65535u	/* of a PU, core or NUMA node */
#define TRACE_TASKS_BITS (256u << 20)	/* of all tasks' sets, 32 MiB */

struct trace_task {
	unsigned rank;
	hwloc_bitmap_t pus, cores, numa;	/* by the system's index, logical index, the system's index */
	hwloc_bitmap_t memory;		/* the NUMA nodes that its memory is bound to; NULL: to none */
	char gpu[256], nic_far[160];	/* printable; "": not known */
	bool by_gpu;			/* --topo-tasks=auto or --topo-place=gpu placed it */
	bool lacks_cores;		/* which were far from its GPUs because the step lacked cores of the job */
};

struct trace_tasks {
	char node[256], step[64], capture[4096];	/* printable; capture: the job's matrix, or "" */
	unsigned nodes;			/* of the step */
	hwloc_bitmap_t cores;		/* of the step on this node */
	struct trace_task *list;	/* by rank */
	unsigned n;
	uint64_t bits;			/* of the sets of all */
};

/* NULL on error. Free with trace_tasks_free, which accepts NULL. */
struct trace_tasks *trace_tasks_read(const char *path, struct err *e);
void trace_tasks_free(struct trace_tasks *t);
