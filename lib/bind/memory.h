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
 * Set the calling process's memory policy (set_mempolicy(2)), which exec preserves: local; bind to, or interleave over,
 * the NUMA nodes that memory_nodes.h chooses for the task's PUs, or for all of the topology's PUs; requests that choose
 * among tiers prefer these nodes, or bind to them if they are strict. Nodes outside the cpuset are left out. 0, or -1
 * with an error and the policy unchanged.
 */
int memory_bind(hwloc_topology_t t, const struct bind_request *r, hwloc_const_bitmap_t task, struct err *e);

/*
 * The same for --topo-membind=...,job: prefer, or bind to, the normal memory of the job's PUs. Linux before 5.15 cannot
 * prefer several NUMA nodes: then the policy is unchanged, and there is an error.
 */
int memory_follow(hwloc_topology_t t, enum bind_mems mems, hwloc_const_bitmap_t job, struct err *e);

/*
 * The current policy (get_mempolicy(2)) as text: "default", "bind:0-1", "interleave:0,2", "local". 0, or -1 with an
 * error.
 */
int memory_policy_text(char *out, size_t size, struct err *e);

#endif
