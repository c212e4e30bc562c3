/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_H
#define TOPIARY_H

#include <hwloc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a topology came from. */
enum topiary_source {
	TOPIARY_SHMEM = 1,	/* the step's image in shared memory, adopted */
	TOPIARY_XML = 2,	/* the file that HWLOC_XMLFILE names */
	TOPIARY_DISCOVERY = 3,	/* hwloc itself, as the rest of its environment has it */
};

/*
 * One that may be changed (hwloc_topology_restrict and its like): a copy of its own, where an adopted one is read-only.
 */
#define TOPIARY_WRITABLE 1UL

/*
 * The topology that this process is to work with, I/O devices included (HWLOC_TYPE_FILTER_KEEP_IMPORTANT): in a job the
 * hardware that its step was given, otherwise this machine. Free it with hwloc_topology_destroy. The source, or -1 with
 * errno and *topology untouched. Threads may call it at the same time.
 */
int topiary_topology_load(hwloc_topology_t *topology, unsigned long flags);

/*
 * Why the last load of this thread took no quicker way, in one line; "" when there is none. Good until its next load.
 */
const char *topiary_topology_reason(void);

#ifdef __cplusplus
}
#endif

#endif
