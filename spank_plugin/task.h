/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TASK_H
#define TOPIARY_SPANK_TASK_H

#include <hwloc.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bind/vars.h"

/*
 * A task of a step, in its own process, as the user, after Slurm has bound it and before its program. Each task adopts the
 * step's topology, works out what all the node's tasks get, and takes its own share: there is nothing to agree on.
 */
struct task {
	spank_t sp;
	uint32_t local, global, nlocal;	/* S_TASK_ID, S_TASK_GLOBAL_ID, S_JOB_LOCAL_TASK_COUNT */
	unsigned cpus;			/* of a task, as Slurm counts them; 0: nobody said */
	hwloc_topology_t topology;	/* restricted to the step's cores; read only */
	hwloc_bitmap_t *masks;		/* the PUs of each local task, by its local number */
	bool moved;			/* the masks are ours, not Slurm's: bind to it */
	struct vars vars;		/* the task's environment */
	char nic[256];			/* the devices it was given, or "" */
};

/* slurm_spank_task_init. Always 0: what fails is said once, and the task runs as Slurm has it. */
int task_prepare(spank_t sp, int argc, char **argv);

/*
 * Sources of masks, asked in this order until one fills those of all local tasks: the job's map (mapped.c), --topo-place
 * (placed.c), what Slurm bound them to (bound.c). 1: filled; 0: has nothing to say; -1: an error.
 */
int task_mapped(struct task *t, struct err *e);
int task_placed(struct task *t, struct err *e);
int task_bound(struct task *t, struct err *e);

/* The network device (nic.c). 0 or -1. */
int task_nic(struct task *t, struct err *e);

#endif
