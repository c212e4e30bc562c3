/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_GPU_OWN_H
#define TOPIARY_BIND_GPU_OWN_H

#include <hwloc.h>
#include <stddef.h>

#include "base/err.h"

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

#endif
