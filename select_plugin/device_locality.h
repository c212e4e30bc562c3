/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_DEVICE_LOCALITY_H
#define TOPIARY_SELECT_DEVICE_LOCALITY_H

#include "job_request.h"

/*
 * The cores near to the devices (GRES) that a job would get on a node. Where gres.conf tells Slurm which cores a device
 * is near to (Cores=, AutoDetect), Slurm grants devices near to the cores that the job gets, and there is a choice;
 * where it does not, Slurm grants the first that are free, and the snapshot's devices of that kind, in its order, tell
 * where these are.
 */
#define DEVICE_SETS_MAX 16

/* One device kind of a job; count 0: none that is near to anything. */
struct device_need {
	const char *name;	/* "gpu"; borrowed from the job */
	uint32_t type;		/* Slurm's number of "a100" and the like; 0: any */
	uint64_t per_node, per_task;
};

/*
 * Each node has a device, and so the CPUs that come with one (--cpus-per-gpu), and together they have as many as the
 * job is to have (--gpus): req->min_cpus and the numbers of nodes in req are what that leaves of these nodes.
 */
void device_locality_read(const job_record_t *job, const bitstr_t *nodes, struct job_request *req,
			  struct device_need *out);

/*
 * Sets of cores, at most DEVICE_SETS_MAX, each near to enough free devices, one after another in cores[] of
 * core_set_words(shape->cores) words each: the number of sets; 0 when nobody knows.
 */
unsigned device_locality_sets(const struct device_need *need, uint32_t tasks, int node, const struct shape *shape,
			      uint64_t *cores);

#endif
