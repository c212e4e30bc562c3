/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "score/score.h"

/*
 * Memory by NUMA node, for the select plugin. Slurm counts memory by the node; a task's pages, however, come from the
 * NUMA node of its core (Linux allocates them at first touch). A job's memory on a node is therefore counted on the
 * NUMA nodes of its cores, in proportion to its cores there. Independent of Slurm.
 *
 * The memory that Slurm may allocate on a node is divided among its NUMA nodes in proportion to what the shape states.
 * It is that of the first tier that a NUMA node has (shape/tier.h), DRAM before HBM; other tiers, which no task gets
 * unless it asks for them, are set aside.
 * If jobs exceed one of them, the excess is in the others, in proportion to what these have free.
 */

/* Units of memory by core: 1/16 MB, so that shares of a job's memory are rounded by less than that. */
#define NUMA_MEMORY_UNIT 16u

struct numa_memory {
	uint64_t capacity, held;	/* MB that Slurm may allocate on the node, and that its jobs have */
	const uint32_t *used;		/* by core of the shape: units that jobs on this core asked for */
	uint64_t wanted;		/* MB that the job asks for on the node */
};

/*
 * The limits by which `cores` cores, of those in free_cores[], have all their memory in their own NUMA nodes: of a NUMA
 * node with 40 % of that much memory free at most 40 % of the cores. Only limits that matter are written, at most
 * `room`. Returns their number: 0 if there are none, the job wants no memory, or the shape has no such NUMA nodes
 * (shape_numas).
 */
unsigned numa_memory_limits(const struct shape *shape, const struct numa_memory *m, unsigned cores,
			    const uint64_t *free_cores, struct score_limit *out, unsigned room);
