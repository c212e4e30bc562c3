/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "gpus.h"

#include "bind/gpu.h"
#include "bind/gpu_own.h"

const char *const gpus_variables[] = {
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL", NULL,
};

static char step_gpus[GPU_LIST_SIZE], step_visible[GPU_LIST_SIZE];

static void read_variable(spank_t sp, const char *name, char *out, size_t size)
{
	if (spank_getenv(sp, name, out, size))
		*out = '\0';
}

void gpus_visible(spank_t sp, char *out, size_t size)
{
	*out = '\0';
	for (const char *const *name = gpus_variables; !*out && *name; name++)
		read_variable(sp, *name, out, size);
}

int gpus_open(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	read_variable(sp, "SLURM_STEP_GPUS", step_gpus, sizeof(step_gpus));
	gpus_visible(sp, step_visible, sizeof(step_visible));
	return 0;
}

int gpus_of_task(spank_t sp, hwloc_topology_t node, char *out, size_t size, struct err *e)
{
	char task[GPU_LIST_SIZE], visible[GPU_LIST_SIZE];

	read_variable(sp, "SLURM_STEP_GPUS", task, sizeof(task));
	gpus_visible(sp, visible, sizeof(visible));
	return gpu_own(node, "", &(struct gpu_lists){ step_gpus, step_visible, task, visible }, out, size, e);
}
