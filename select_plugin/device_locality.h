/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_DEVICE_LOCALITY_H
#define TOPIARY_SELECT_DEVICE_LOCALITY_H

#include "job_request.h"
#include "score/device_share.h"

/*
 * The cores near the devices (GRES) that a job would get on a node. Where gres.conf states which cores a device is near
 * (Cores=, AutoDetect), Slurm grants devices near the cores that the job gets, so there is a choice. Otherwise Slurm
 * grants the first free ones, and the snapshot's devices of that kind, in its order, state where these are.
 */
#define DEVICE_SETS_MAX DEVICE_SHARES_MAX

/* The ranges of cores that the devices of a set are near, ascending and disjoint. */
struct device_set {
	unsigned n;		/* 0 if odd */
	bool odd;		/* there are no such ranges */
	struct device_share share[DEVICE_SHARES_MAX];
};

/* One kind of device that a job requests; count 0: none with a locality. */
struct device_need {
	const char *name;	/* "gpu"; borrowed from the job */
	uint32_t type;		/* Slurm's number of "a100" and the like; 0: any */
	uint64_t per_node, per_task;
	uint64_t each, total;	/* --mem-per-gpu or DefMemPerGPU, MB; --gpus. 0: none */
	bool on_each_node;	/* per_node is what the job states */
};

/*
 * For jobs that have a device on each node, hence the CPUs of --cpus-per-gpu, or a total number of devices (--gpus):
 * sets req->min_cpus and restricts the numbers of nodes in req.
 */
void device_locality_read(const job_record_t *job, const bitstr_t *nodes, struct job_request *req,
			  struct device_need *out);

/*
 * Writes sets of cores, at most DEVICE_SETS_MAX, each near enough free devices, one after another into cores[],
 * core_set_words(shape->cores) words each, and which of the devices are near which of them into sets[]. Returns the
 * number of sets; 0 when the locality is unknown.
 */
unsigned device_locality_sets(const struct device_need *need, uint32_t tasks, int node, const struct shape *shape,
			      uint64_t *cores, struct device_set *sets);

/* Whether the job asks for GPUs, in whatever way. */
bool device_wants_gpus(const job_record_t *job);

/*
 * The cores near the free GPUs of a node, as sets in cores[] as above, at most DEVICE_SETS_MAX - 1, and how many GPUs
 * each set is near to. Returns their number; 0 when none is free, or where they are is unknown. With DEVICE_SETS_MAX
 * there are more than it can tell.
 */
unsigned device_free_gpus(int node, const struct shape *shape, uint64_t *cores, unsigned *devices);

/*
 * How far the GPUs that a running job was granted are from its cores, on all its nodes; of those whose near cores are
 * known. Call node_shapes_begin before.
 */
struct device_distance {
	unsigned gpus, gpus_far;	/* far: none of the job's cores there is near it */
	unsigned cores_far;		/* of the job, on nodes with such GPUs, that are near none of these */
};
struct device_distance device_distance(const job_record_t *job);

/*
 * The memory that the job's devices bring to a node with so many tasks, in MB; 0: the job's memory is not by device. If
 * Slurm may give a node more or fewer of them, for the most.
 */
uint64_t device_memory(const struct device_need *need, const struct job_request *req, uint32_t tasks, int node);

#endif
