/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Loads a node's exported XML as hwloc's topology with everything in it, also I/O and disallowed cores: Slurm counts
 * those, too (src/slurmd/common/xcpuinfo.c, WHOLE_SYSTEM). NULL on error, for example for XML of a later hwloc than the
 * one linked. Free with hwloc_topology_destroy.
 */
hwloc_topology_t machine_load(const char *xml, size_t len, struct err *e);

/*
 * Exports a topology as XML in the format of hwloc 2, which programs linked with hwloc 2 or 3 can load: hwloc 2 cannot
 * load that of hwloc 3. 0, or -1 with out untouched. The caller frees out.
 */
int machine_export(hwloc_topology_t topology, struct buf *out, struct err *e);
/* The same in format 2 or 3; 0: that of the linked hwloc. An error if that hwloc does not support the format. */
int machine_export_as(hwloc_topology_t topology, unsigned format, struct buf *out, struct err *e);

/*
 * The type that counts as a core: Core, or PU on machines whose kernel does not report cores. Core i of a list is
 * hwloc's object i of that type, which is also Slurm's numbering.
 */
hwloc_obj_type_t machine_core_type(hwloc_topology_t topology);

/*
 * The CPUs that the kernel has in a state: "online", or "present", which has those that are offline, too. NULL with an
 * error; free with hwloc_bitmap_free.
 */
hwloc_bitmap_t machine_cpus(const char *state, struct err *e);

/*
 * Leaves of the NUMA nodes those that are nearest to a PU: in, or around, the narrowest object around it that has any.
 * 0, or -1: out of memory. Called by hwview/restrict.c and lib/bind.
 */
int machine_nearest(hwloc_obj_t pu, hwloc_bitmap_t nodes);

/* One byte for each core, 1 for those in the list; *count is the number of cores. malloc'ed; NULL on error. */
unsigned char *machine_select(hwloc_topology_t topology, const char *cores, unsigned *count, struct err *e);

/*
 * The CPUs that a process, 0 for this one, may run on (sched_getaffinity(2)), by OS index, and binding this one.
 * hwloc's own calls need a topology that is marked as this system's. Called by spank_plugin/task and cli/place/bind.c.
 * 0, or -1 with an error.
 */
int machine_bound(pid_t pid, hwloc_bitmap_t out, struct err *e);
int machine_bind(hwloc_const_bitmap_t cpus, struct err *e);
