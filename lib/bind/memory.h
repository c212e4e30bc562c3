/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_MEMORY_H
#define TOPIARY_BIND_MEMORY_H

#include <hwloc.h>
#include <stddef.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * Memory policies of tasks, for spank_plugin/task/.
 *
 * The NUMA nodes local to some PUs, by OS index: for each PU the innermost; of several memories local to the same PUs
 * (HBM beside DRAM) the first in hwloc's order, DRAM. Replaces the contents of out, which is the caller's.
 */
void memory_local_nodes(hwloc_topology_t t, hwloc_const_bitmap_t pus, hwloc_bitmap_t out);

/*
 * Set the calling process's memory policy (set_mempolicy(2)), which exec preserves: local; bind to the NUMA nodes
 * local to the task's PUs; or interleave over these, or over those local to all of the topology's PUs. Nodes outside
 * the cpuset are left out. 0, or -1 with an error and the policy unchanged.
 */
int memory_bind(hwloc_topology_t t, const struct bind_request *r, hwloc_const_bitmap_t task, struct err *e);

/*
 * The current policy (get_mempolicy(2)) as text: "default", "bind:0-1", "interleave:0,2", "local". 0, or -1 with an
 * error.
 */
int memory_policy_text(char *out, size_t size, struct err *e);

#endif
