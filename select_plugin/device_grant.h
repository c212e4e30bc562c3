/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_DEVICE_GRANT_H
#define TOPIARY_SELECT_DEVICE_GRANT_H

#include "slurm_glue.h"

/*
 * Which devices (GRES) of its nodes a job gets, and how far they are from its cores. Slurm counts devices and selects
 * them by socket: the first free ones beside the job's cores, of whichever of the socket's NUMA nodes. Call
 * node_shapes_begin before.
 */

/*
 * For a job that the wrapped plugin just gave cores and devices and that is about to start: replaces its devices by as
 * many free ones of the same type on the same nodes where these are nearer to its cores (device_choice_improve).
 * Devices that Slurm shares (mps, shard), requests by socket and nodes with RestrictedCoresPerGPU stay as they are, and
 * so do several devices with better links.
 */
void device_grant_choose(job_record_t *job);

/* Forgets such a choice for a job that has not started. Slurm itself only replaces it where it knows the cores. */
void device_grant_forget(job_record_t *job);

/* Of a running job's GPUs, on all its nodes. */
struct device_distance {
	unsigned gpus, gpus_far;	/* whose near cores are known; far: none of the job's cores there is near it */
	unsigned gpus_unknown;		/* whose near cores are not known */
	unsigned cores_far;		/* of the job, on nodes with such GPUs, that are near none of these */
};
struct device_distance device_distance(const job_record_t *job);

#endif
