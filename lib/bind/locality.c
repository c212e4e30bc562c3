/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/locality.h"

#include <stdio.h>

#include "hwview/machine.h"

void locality_describe(hwloc_topology_t node, hwloc_const_bitmap_t near, hwloc_const_bitmap_t pus,
		       char out[static LOCALITY_SIZE])
{
	hwloc_obj_type_t type = machine_core_type(node);
	unsigned all = 0, some = 0;

	for (hwloc_obj_t core = NULL; near && (core = hwloc_get_next_obj_by_type(node, type, core));)
		if (hwloc_bitmap_intersects(core->cpuset, pus)) {
			all++;
			some += hwloc_bitmap_intersects(core->cpuset, near);
		}
	if (some && some < all)
		snprintf(out, LOCALITY_SIZE, " near %u of %u cores", some, all);
	else
		snprintf(out, LOCALITY_SIZE, "%s", !near ? "" : some ? " near" : " far");
}
