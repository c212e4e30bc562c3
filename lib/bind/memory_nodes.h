/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_MEMORY_NODES_H
#define TOPIARY_BIND_MEMORY_NODES_H

#include <hwloc.h>
#include <stddef.h>

#include "base/err.h"
#include "bind/request.h"

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
 * memory. For local, bind and interleave PUs without local memory get all NUMA nodes of the first tier of the
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

#endif
