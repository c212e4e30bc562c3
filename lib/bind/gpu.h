/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_GPU_H
#define TOPIARY_BIND_GPU_H

#include <hwloc.h>
#include <stddef.h>

/*
 * A task's GPUs in its order, each with its locality to the task's CPUs: "2 near,0 far". For --topo-report.
 *
 * visible: the list in CUDA_VISIBLE_DEVICES or its like. all: the step's GPUs (SLURM_STEP_GPUS), or NULL; visible
 * numbers that are not among them are indices into them, as where cgroups hide the other GPUs. A number is that of the
 * vendor's OS device in the topology (nvml2, rsmi2) or, without such a device, that of the display adapter in the
 * order of PCI bus ids, management controllers not counted. A GPU that is not in the topology has no locality. node:
 * the whole node's topology, or NULL.
 */
void gpu_describe(hwloc_topology_t node, const char *visible, const char *all, hwloc_const_bitmap_t cpus, char *out,
	size_t size);

#endif
