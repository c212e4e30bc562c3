/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_MEMORY_H
#define TOPIARY_BIND_MEMORY_H

#include <hwloc.h>
#include <sys/types.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * Memory policies of tasks, for spank_plugin/task/.
 *
 * Set the calling process's memory policy (set_mempolicy(2)), which exec preserves: local; bind to, or interleave over,
 * the NUMA nodes of memory_nodes_choose for the task's PUs, or for all of the topology's PUs; requests that choose
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

/*
 * The NUMA nodes whose memory some PUs should get, by OS index, for memory.c and spank_plugin/task/. Their tiers
 * (shape/tier.h) follow from hwloc's subtypes, infos and memory attributes, not from the order of the nodes.
 *
 * For each PU, of the NUMA nodes that it is local to, by what is wanted:
 *	local, bind, interleave	the innermost, and of several with the same PUs those of the first tier: DRAM
 *	hbm, dram		the innermost of that tier
 *	capacity		the largest
 *	bandwidth, latency	the best by hwloc's memory attributes
 * The last three never choose GPU memory. Of several NUMA nodes that serve equally all are chosen, and none that has no
 * memory. For local, bind and interleave PUs without local memory get the nearest NUMA nodes of the first tier of the
 * topology. Off is as local, but of PUs without local memory the NUMA nodes that they are in: where the PUs are, for
 * reports.
 *
 * Replaces the contents of out, which is the caller's. 0, or -1 with an error: none has such memory, the topology does
 * not state how several differ, memory. For local, bind and interleave no node is no error.
 */
int memory_nodes_choose(hwloc_topology_t t, enum bind_memory wanted, hwloc_const_bitmap_t pus, hwloc_bitmap_t out,
	struct err *e);

/*
 * The tiers of NUMA nodes as text: "hbm", "dram+hbm"; "" where all memory of the topology is of one tier.
 */
void memory_nodes_tiers(hwloc_topology_t t, hwloc_const_bitmap_t nodes, char *out, size_t size);

/*
 * The memory of a process by NUMA node, as /proc/PID/numa_maps has it (proc(5)), and moving it (migrate_pages(2)). For
 * cli/watch/memory.c. Pages that several processes map count for each.
 */
#define PAGES_NODES 1024u	/* MAX_NUMNODES of the kernel's largest configuration */

struct pages {
	uint64_t kib[PAGES_NODES];	/* by the operating system's number of the NUMA node */
};

/* Add what numa_maps says. Lines that cannot be read are skipped. */
void pages_add(const char *numa_maps, struct pages *sum);

/* Add those of a process. 0, or -1 with an error: it has ended, or is another user's. */
int pages_read(pid_t pid, struct pages *sum, struct err *e);

/*
 * Move the pages of a process that are on others of all NUMA nodes to these, by the operating system's numbers. The
 * memory policy stays: pages that the process touches later are where it says. 0, or -1 with an error: the process is
 * another user's, or these NUMA nodes are not among those that it may use.
 */
int pages_move(pid_t pid, hwloc_const_bitmap_t all, hwloc_const_bitmap_t to, struct err *e);

#endif
