/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_LOCALITY_H
#define TOPIARY_BIND_LOCALITY_H

#include <hwloc.h>

#define LOCALITY_SIZE 64u

/*
 * How near a device is to the cores of a task's PUs, for --topo-report: " near" to all of them, " near 3 of 8 cores",
 * or " far"; "" if near, the PUs local to the device, is NULL. node: the whole node's topology.
 */
void locality_describe(hwloc_topology_t node, hwloc_const_bitmap_t near, hwloc_const_bitmap_t pus,
		       char out[static LOCALITY_SIZE]);

#endif
