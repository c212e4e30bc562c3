/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_VARS_H
#define TOPIARY_BIND_VARS_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"

/* The environment that nic_vars.c and vars.c export to: of a task in Slurm (spank_plugin/task/task.c), or of a test. */
struct bind_vars {
	bool (*has)(void *env, const char *name);			/* is it set, by whomever? */
	void (*set)(void *env, const char *name, const char *value);	/* only if it is not set */
	void *env;
};

/* A task. */
struct omp_task {
	hwloc_const_bitmap_t pus;
	unsigned cpus;		/* as Slurm counts them, or 0: not set */
	unsigned sharers;	/* tasks that share any of these PUs, including this one */
};

/*
 * --topo-omp: OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND (OpenMP 5.2, chapter 21) for a task bound to those PUs. A
 * place is a core, or a PU when the task has more CPUs than cores; there are as many threads as places, but no more
 * than the task has CPUs. OMP_GOMP and OMP_KMP set GOMP_CPU_AFFINITY or KMP_AFFINITY instead of OMP_PLACES and
 * OMP_PROC_BIND, with which they conflict. Tasks that share PUs get a share of the threads and no places: bound
 * threads of several tasks would use the same cores. A variable that is set stays, and where one that binds threads is
 * set, nothing is. Called by spank_plugin/task/task.c. 0, or -1 with an error.
 */
int omp_export(hwloc_topology_t t, enum bind_omp omp, const struct omp_task *task, const struct bind_vars *v,
	struct err *e);

/*
 * Variables by which a user chooses where Intel MPI's ranks run (Developer Reference, "Process Pinning"), with NULL at
 * the end. For spank_plugin/launch/launchers.c and cli/place/bind.c.
 */
extern const char *const vars_intel_pin[];

#define HUGE_VARIABLE "GLIBC_TUNABLES"

/*
 * Huge pages for malloc(3) by glibc's tunables (glibc manual, "Memory Allocation Tunables": glibc.malloc.hugetlb 1, 2
 * or the size of a page, since 2.35; older ones ignore it). Sets out to the new value of HUGE_VARIABLE from its current
 * one or NULL: the tunable is appended unless it is set already. Called by spank_plugin/task/task.c. 0, or -1 with an
 * error: the node has no such pages, so that malloc would silently use small ones, or the value is too long.
 */
int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e);

#endif
