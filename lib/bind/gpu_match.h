/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_GPU_MATCH_H
#define TOPIARY_BIND_GPU_MATCH_H

#include <stdint.h>

#include "base/err.h"

/*
 * Which GPUs and which cores each task of a node gets. Cores are slots, each large enough for a task. Of all balanced
 * choices the one with the smallest sum, over the tasks and their GPUs, of the distance between slot and GPU:
 *
 * - with as many tasks as GPUs or more, each task has one GPU, and two GPUs differ by at most one task;
 * - with fewer tasks, all GPUs are given away, and two tasks differ by at most one GPU.
 *
 * The first is a transportation problem, solved by successive shortest paths (Ahuja, Magnanti and Orlin, "Network
 * Flows", 1993, section 9.7). The second is one for each way to distribute the tasks over slots that are equally far
 * from every GPU; all ways are tried up to GPU_MATCH_WAYS, which 16 GPUs in 8 NUMA nodes do not reach. Tasks are
 * numbered in the order of their first GPUs. Called by place_gpu.c.
 */
#define GPU_MATCH_WAYS 20000u
#define GPU_MATCH_GPUS 64u

struct gpu_match {
	unsigned ntasks, ngpus, nslots;
	const unsigned long *distance;	/* [slot * ngpus + gpu] */
	unsigned room;			/* tasks that a slot has room for: room * nslots >= ntasks */
};

/* slot[task], and gpus[task] with a bit for each GPU; *sum is the sum. 0, or -1: memory. */
int gpu_match(const struct gpu_match *m, unsigned *slot, uint64_t *gpus, unsigned long long *sum, struct err *e);

#endif
