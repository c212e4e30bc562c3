/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/err.h"

/*
 * Parses "0-3,8,10-11", core indices as Slurm gives them in S_STEP_ALLOC_CORES, into max flags: wanted[i] is 1 for a
 * core in the list, which must not be empty. 0, or -1 with wanted undefined for anything else, or an index of max or
 * more.
 */
int cores_parse(const char *list, unsigned char *wanted, size_t max, struct err *e);

/*
 * The PUs of cores in a list as above, of hwloc's logical core indices, in a node's whole topology. NULL on error; free
 * with hwloc_bitmap_free.
 */
hwloc_bitmap_t restrict_cpus(hwloc_topology_t t, const char *cores, struct err *e);

/*
 * Restricts a node's topology, as returned by machine_load, to some of its cores: their PUs and NUMA nodes, and the I/O
 * devices that remain local, as by hwloc_topology_restrict(3). cores is a list as above, of hwloc's logical core
 * indices. OS indices are kept; logical ones are renumbered from 0. 0, or -1 with t only usable for
 * hwloc_topology_destroy.
 */
int restrict_topology(hwloc_topology_t t, const char *cores, struct err *e);

/*
 * The same to some of its PUs, those of the set that it has: 0, or -1 with t only usable for hwloc_topology_destroy.
 */
int restrict_to_cpus(hwloc_topology_t t, hwloc_const_bitmap_t cpus, struct err *e);
