/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_MEMORY_H
#define TOPIARY_BIND_MEMORY_H

#include <hwloc.h>
#include <stddef.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * The NUMA nodes local to some PUs: of each PU the innermost; of several memories local to the same PUs (HBM beside DRAM)
 * the one hwloc lists first, DRAM. OS indices, into out, which is the caller's and becomes just these.
 */
void memory_near(hwloc_topology_t t, hwloc_const_bitmap_t pus, hwloc_bitmap_t out);

/*
 * Set the calling process's memory policy (set_mempolicy(2)), which outlives exec: local, bind to the NUMA nodes near the
 * task's PUs, or interleave over them or over those near all of the topology's; never a node that the process may not use.
 * 0, or -1 with an error and the policy as it was.
 */
int memory_bind(hwloc_topology_t t, const struct bind_request *r, hwloc_const_bitmap_t task, struct err *e);

/* What the kernel says now (get_mempolicy(2)), as words: "default", "bind:0-1", "interleave:0,2", "local". 0, or -1. */
int memory_tell(char *out, size_t size, struct err *e);

#endif
