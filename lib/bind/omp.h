/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_OMP_H
#define TOPIARY_BIND_OMP_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"
#include "bind/vars.h"

/* A task, for OpenMP. */
struct omp_task {
	hwloc_const_bitmap_t pus;
	unsigned cpus;		/* as Slurm counts them, or 0: nobody said */
	unsigned sharers;	/* tasks that have some of these PUs, this one counted */
};

/*
 * OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND (OpenMP 5.2, chapter 21) for a task bound to those PUs: a place is a core,
 * or a PU when the task has more CPUs than cores; as many threads as places, but no more than it has CPUs. OMP_GOMP and
 * OMP_KMP: GOMP_CPU_AFFINITY or KMP_AFFINITY in place of OMP_PLACES and OMP_PROC_BIND, with which they conflict. Tasks
 * that share PUs get a share of the threads and no places: bound threads of several would meet on the same cores. A
 * variable the user set stays, and where the user set one of those that say where threads go none of these is touched. 0,
 * or -1: memory.
 */
int omp_export(hwloc_topology_t t, enum bind_omp omp, const struct omp_task *task, const struct vars *v, struct err *e);

#endif
