/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>
#include <slurm/spank.h>

#include "base/err.h"
#include "bind/vars.h"

/*
 * A task of a step, in its own process, as the user, after Slurm has bound it and before its program. Each task adopts
 * the step's topology, computes the masks of all the node's tasks and applies its own: tasks need no communication.
 */
struct task {
	spank_t sp;
	uint32_t local, global, nlocal;	/* S_TASK_ID, S_TASK_GLOBAL_ID, S_JOB_LOCAL_TASK_COUNT */
	unsigned cpus;			/* per task, as Slurm counts them; 0: not set */
	bool whole;			/* a CPU of Slurm is a core here, with all its PUs */
	hwloc_topology_t topology;	/* restricted to the step's cores; read only */
	hwloc_bitmap_t *masks;		/* the PUs of each local task, by its local number */
	bool rebind;			/* the masks are Topiary's, not Slurm's: bind to them */
	struct bind_vars vars;		/* the task's environment */
	char nic[256];			/* its network devices and where they are, or "" */
	hwloc_bitmap_t *near;		/* the PUs near the GPUs of each local task; NULL: not known */
	char *gpus;			/* all GPUs of the step here, by the node's numbers; NULL: not placed by GPU */
	uint64_t *which_gpus;		/* of these, each local task's */
	bool lacks_cores;		/* it is far from its GPUs, whose cores the job has and the step has not */
};

/*
 * slurm_spank_task_init, called by dispatch.c: run the task's actions. Always 0: what fails is logged once, and the
 * task runs with Slurm's binding. Launchers (step.launcher) are left alone.
 */
int task_prepare(spank_t sp, int argc, char **argv);

/* Empty masks for t->nlocal tasks. 0, or -1: memory. task_free frees these and the topology. */
int task_alloc_masks(struct task *t, struct err *e);
void task_free(struct task *t);

/*
 * Sources of masks, tried in this order until one fills those of all local tasks: the job's rank map,
 * --topo-place, Slurm's binding (masks.c). 1: filled; 0: does not apply; -1: an error.
 */
int task_masks_from_map(struct task *t, struct err *e);
int task_masks_from_option(struct task *t, struct err *e);
int task_masks_from_slurm(struct task *t, struct err *e);

/*
 * gpus.c, for --topo-place=gpu: the PUs of all local tasks, and this task's GPUs in its environment. 1: done; 0: the
 * step has no GPUs; -1: an error.
 */
int task_places_from_gpus(struct task *t, hwloc_bitmap_t *places, struct err *e);

/*
 * slurm_spank_init_post_opt, called by dispatch.c: remember the step's GPUs, before tasks have their own, and share
 * memory in which the tasks exchange theirs. Always 0.
 */
int gpus_open(spank_t sp, int argc, char **argv);

/* This task's GPUs by the node's numbers, as gpu_own. 0, or -1 with an error. */
int gpus_of_task(spank_t sp, hwloc_topology_t node, char *out, size_t size, struct err *e);

/*
 * masks.c: the masks from a text as in map_places.h; it uses only sp, nlocal, topology and masks. Also for
 * launch/launchers.c.
 */
int task_masks_from_places(struct task *t, const char *places, struct err *e);

/*
 * --topo-report: what the kernel reports for each task. The tasks of a node write their records side by side into
 * shared memory, and the one that comes last prints all of them, in the order of ranks, to its stderr: no task waits
 * for another.
 */

/*
 * slurm_spank_init_post_opt on the node, after step_open: allocate the shared memory. Called by dispatch.c. Always 0.
 */
int report_open(spank_t sp, int argc, char **argv);

/*
 * Write this task's record, whatever failed before, so that the others are printed, and its line of NODE.tasks
 * (step/step.h). Called by task.c. 0, or -1 with an error.
 */
int report_task(const struct task *t, struct err *e);
