/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWVIEW_MACHINE_H
#define TOPIARY_HWVIEW_MACHINE_H

#include <hwloc.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * A node's exported XML as hwloc's topology, all that it holds kept, I/O and disallowed cores included: Slurm counts
 * those too (src/slurmd/common/xcpuinfo.c, WHOLE_SYSTEM). NULL on error, as for XML of a later hwloc than the one we
 * are linked with. Free with hwloc_topology_destroy.
 */
hwloc_topology_t machine_load(const char *xml, size_t len, struct err *e);

/*
 * The XML of a topology in the format of hwloc 2, which programs linked with hwloc 2 or 3 can load: hwloc 2 fails on
 * that of hwloc 3. 0, or -1 with out untouched. The caller frees out.
 */
int machine_export(hwloc_topology_t topology, struct buf *out, struct err *e);
/* The same in format 2 or 3; 0: that of the hwloc we are linked with. An error where that hwloc does not write it. */
int machine_export_as(hwloc_topology_t topology, unsigned format, struct buf *out, struct err *e);

/*
 * The type that counts as a core: Core, or PU on machines whose kernel tells of no cores. Core i of a list is hwloc's
 * object i of that type, which is also Slurm's numbering.
 */
hwloc_obj_type_t machine_core_type(hwloc_topology_t topology);

/* One byte a core, 1 for those that the list names; *count is the number of cores. malloc'ed; NULL on error. */
unsigned char *machine_select(hwloc_topology_t topology, const char *cores, unsigned *count, struct err *e);

#endif
