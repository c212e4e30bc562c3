/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_NEAR_H
#define TOPIARY_SELECT_NEAR_H

#include "ask.h"

/*
 * The cores near to the devices (GRES) that a job would get on a node. Where gres.conf tells Slurm which cores a device
 * is near to (Cores=, AutoDetect), Slurm grants devices near to the cores that the job gets, and there is a choice;
 * where it does not, Slurm grants the first that are free, and the snapshot's devices of that kind, in its order, tell
 * where these are.
 */
#define NEAR_MAX 16

/* One device kind of a job; count 0: none that is near to anything. */
struct near_need {
	const char *name;	/* "gpu"; borrowed from the job */
	uint32_t type;		/* Slurm's number of "a100" and the like; 0: any */
	uint64_t per_node, per_task;
};

/*
 * Each node has a device, and so the CPUs that come with one (--cpus-per-gpu): ask->min_cpus, and ask->max_nodes, are
 * what that leaves.
 */
void near_read(const job_record_t *job, struct ask *ask, struct near_need *out);

/*
 * Sets of cores, at most NEAR_MAX, each near to enough free devices, one after another in cores[] of
 * core_set_words(shape->cores) words each: the number of sets; 0 when nobody knows.
 */
unsigned near_sets(const struct near_need *need, uint32_t tasks, int node, const struct shape *shape, uint64_t *cores);

#endif
