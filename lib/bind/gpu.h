/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_GPU_H
#define TOPIARY_BIND_GPU_H

#include <hwloc.h>
#include <stddef.h>

/*
 * A task's GPUs in its order, each with where it is from the task's CPUs: "2 near,0 far". visible: what the task sees, as
 * in CUDA_VISIBLE_DEVICES; all: those of its step, as in SLURM_STEP_GPUS, or NULL; visible ones that are not among these
 * count within them, as with cgroups that hide the rest. A number is that of the vendor's device in the topology (nvml2,
 * rsmi2), or, where it has none, of the display adapter in the order of PCI bus ids, management controllers left out. What
 * the topology does not tell stands alone. cpus: on which side the task is. node: the whole node's topology, or NULL.
 */
void gpu_tell(hwloc_topology_t node, const char *visible, const char *all, hwloc_const_bitmap_t cpus, char *out, size_t size);

#endif
