/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_GPU_H
#define TOPIARY_BIND_GPU_H

#include <hwloc.h>

#include "base/err.h"

/*
 * The GPUs of a step or task as lists of ids, "0,2", which Slurm has in the variables of each maker
 * (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK, GPU_DEVICE_ORDINAL), and where they are. For
 * --topo-report, --topo-place=gpu and --topo-tasks.
 */

#define GPU_LIST_SIZE 4096u	/* 64 UUIDs of MIG instances */

/*
 * The variables in which Slurm has a task's GPUs, of each maker (Slurm's src/plugins/gres/common/gres_common.c), and
 * NULL. The first that is set has them all.
 */
extern const char *const gpu_variables[];

/* All GPUs of the node whose numbers are known, in order; "" for none. 0, or -1: out is too small. */
int gpu_all(hwloc_topology_t node, char *out, size_t size);

/* The number of ids in a list, at most GPU_MATCH_GPUS; 0 for NULL. */
unsigned gpu_count(const char *list);

/* Those ids of a list whose bits are set, in order. 0, or -1: out is too small. */
int gpu_subset(const char *list, uint64_t which, char *out, size_t size);

/* Which ids of a list another list has: a bit for each. 0: one is not among them. */
uint64_t gpu_which(const char *list, const char *all);

/*
 * near[i]: the PUs local to the i-th id of a list, by the node's topology; the caller allocates gpu_count bitmaps. An
 * id is as in gpu_describe, or a UUID that the vendor's OS device has. The UUID of a MIG instance has the locality that
 * all GPUs of the node have in common. 0, or -1 with an error: the topology does not have that GPU.
 */
int gpu_localities(hwloc_topology_t node, const char *list, hwloc_bitmap_t *near, struct err *e);

/* The PCI function of the i-th GPU of a list; NULL: not known. */
hwloc_obj_t gpu_function(hwloc_topology_t node, const char *list, unsigned i);

/*
 * --topo-place=gpu: the PUs and the GPUs of each of a node's tasks (gpu_match). topology: restricted to the step's
 * cores; node: the whole node's. near: of the step's GPUs. fixed: the GPUs of each task, where Slurm has bound them, or
 * NULL. cpus: per task; 0: as many whole cores as leave each task as near as one core would. A task alone has cores
 * near each of its GPUs, wherever these are. masks[0 .. ntasks-1] are empty; gpus[task] has a bit for each GPU. Called
 * by spank_plugin/task/gpus.c. 0, or -1 with an error.
 */
struct gpu_places {
	hwloc_topology_t topology, node;
	const hwloc_bitmap_t *near;
	unsigned ngpus, ntasks, cpus;
	const uint64_t *fixed;
	bool whole;		/* a CPU is a core (place.h) */
};
int gpu_place(const struct gpu_places *how, hwloc_bitmap_t *masks, uint64_t *gpus, struct err *e);

/*
 * A task's GPUs in its order, each with its locality to the task's CPUs: "2 near,0 far", and "1 near 3 of 8 cores"
 * where it is near some of their cores alone. For --topo-report.
 *
 * list: by the node's numbers (gpu_own), as in shape/gpu_number.h. A GPU that is not in the topology, or of which the
 * number is not known, has no locality. node: the whole node's topology, or NULL.
 */
void gpu_describe(hwloc_topology_t node, const char *list, hwloc_const_bitmap_t cpus, char *out, size_t size);

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

/*
 * Which GPUs of the node a task has. With ConstrainDevices in cgroup.conf Slurm numbers a task's GPUs from 0 in the
 * makers' variables; if it has bound them to the task as well (--gpus-per-task, --gpu-bind), SLURM_STEP_GPUS of each
 * task names the first of the step's GPUs only, whichever the task has (common_gres_set_env in Slurm's
 * src/plugins/gres/common/gres_common.c, as of 22.05 and 26.05). Which it has then shows in the device files that
 * its cgroup allows. Called by spank_plugin/task/gpus.c.
 */
struct gpu_lists {
	const char *step, *step_visible;	/* SLURM_STEP_GPUS and the maker's variable as the step began */
	const char *task, *visible;		/* the same of the task; each "" if it is not set */
};

/*
 * The task's GPUs by the node's numbers, "1,2", as the functions of gpu.h take them; UUIDs where Slurm has only these,
 * as of MIG instances. node: the whole node's topology, or NULL. root: "", or a directory in its place, for tests. Must
 * be called by the task, in its cgroup. 0, or -1 with an error: which they are cannot be found out.
 */
int gpu_own(hwloc_topology_t node, const char *root, const struct gpu_lists *l, char *out, size_t size, struct err *e);

#define LOCALITY_SIZE 64u

/*
 * How near a device is to the cores of a task's PUs, for --topo-report: " near" to all of them, " near 3 of 8 cores",
 * or " far"; "" if near, the PUs local to the device, is NULL. node: the whole node's topology.
 */
void locality_describe(hwloc_topology_t node, hwloc_const_bitmap_t near, hwloc_const_bitmap_t pus,
		       char out[static LOCALITY_SIZE]);

#endif
