/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_DEVICE_H
#define TOPIARY_SELECT_DEVICE_H

#include "job_request.h"
#include "score/device_choice.h"
#include "slurm_glue.h"

/*
 * Where the devices (GRES) of a node are: near the cores that gres.conf states (Cores=, AutoDetect). Where it states
 * none, the snapshot's devices of that kind with the numbers of Slurm's (shape/gpu_number.h) state it; without a number
 * it is not known.
 */

#define DEVICE_TYPES_MAX 8

/* One kind of device that a job requests, and how many of each type of it; name NULL: none with a locality. */
struct device_need {
	const char *name;	/* "gpu"; borrowed from the job */
	struct device_type_need {
		uint32_t type;	/* Slurm's number of "a100" and the like; 0: any */
		uint64_t per_node, per_task, total;	/* total: --gpus; 0: not stated */
		bool on_each_node;	/* per_node is what the job states */
	} types[DEVICE_TYPES_MAX];	/* each of which a node must have; those beyond the eighth are left to Slurm */
	unsigned ntypes;
	bool by_task;		/* some of a type for each task */
	uint64_t each;		/* --mem-per-gpu or DefMemPerGPU, MB. 0: none */
};

/*
 * For jobs that have a device on each node, hence the CPUs of --cpus-per-gpu, or a total number of devices (--gpus):
 * sets req->min_cpus and restricts the numbers of nodes in req. devices: Slurm's list of what the job asks for, or
 * NULL; memory_set: it has --mem or --mem-per-cpu.
 */
void device_locality_read(slurm_list_t devices, bool memory_set, const bitstr_t *nodes, struct job_request *req,
			  struct device_need *out);

/* How many of a type, and of all types, such a job with so many tasks on a node needs there. */
uint64_t device_of_type(const struct device_type_need *t, uint32_t tasks);
uint64_t device_count(const struct device_need *need, uint32_t tasks);

/*
 * Whether the node has that many of each type, and of so many tasks as many as it has devices for; now: free ones.
 * Whether another node has as many of each; and how many it has of the type of which the job requests the most.
 */
bool device_fits(const struct device_need *need, uint32_t tasks, int node, bool now);
bool device_same(const struct device_need *need, int node, int other);
uint64_t device_available(const struct device_need *need, int node);
uint32_t device_tasks(const struct device_need *need, uint32_t tasks, int node, bool now);

/*
 * How many devices of a type a job has on a node with --gres-flags=enforce-binding, if its cores are in so many domains
 * of a level: Slurm counts those of sockets with cores of the job, and takes off the cores of a socket without devices,
 * or with devices that the job does not need (gres_select_filter_sock_core()). least is UINT64_MAX if too few domains
 * have devices. Where Slurm does not know their cores, any number.
 */
struct device_bounds {
	uint64_t least, most;
};
struct device_bounds device_bounds(const char *name, uint32_t type, int node, const struct shape *shape,
				   enum level level, unsigned domains);

/* Whether the job asks for GPUs, in whatever way. */
bool device_wants_gpus(const job_record_t *job);

/* CPUs for each device (--cpus-per-gpu, DefCpuPerGPU) of a job whose tasks' CPUs do not follow from that; else 0. */
unsigned device_cpus(const job_record_t *job);

/*
 * The free devices that a job needs on a node for so many tasks, grouped by the cores near them, which are written to
 * cores[]: space for DEVICE_SHARES_MAX + 1 sets. No group where this is unknown. Of any type: if a job wants some, of
 * the type that Slurm grants, the first free device's, as long as there are enough. Of several types: of each as many
 * as the job needs, the first free ones, as Slurm grants them.
 */
void device_groups_read(const struct device_need *need, uint32_t tasks, int node, const struct shape *shape,
			uint64_t *cores, struct device_groups *out);

/* Slurm's records of a kind on a node, or NULL; the number of the nth device's type, 0 for none. */
const gres_node_state_t *device_state(int node, const char *name);
uint32_t device_type(const gres_node_state_t *ns, unsigned device);

/* For list_find_first: whether a gres_state_t has this name. */
int device_has_name(void *gres, void *name);

/*
 * The memory that the job's devices bring to a node with so many tasks, in MB; 0: the job's memory is not by device. If
 * Slurm may give a node more or fewer of them, for the most.
 */
uint64_t device_memory(const struct device_need *need, const struct job_request *req, uint32_t tasks, int node);

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

/* Whether each node of a running job has as many GPUs of the job's, and cores with as many threads, as any other. */
bool device_even(const job_record_t *job);

/* Of a running job's GPUs, on all its nodes. */
struct device_distance {
	unsigned gpus, gpus_far;	/* whose near cores are known; far: none of the job's cores there is near it */
	unsigned gpus_unknown;		/* whose near cores are not known */
	unsigned cores_far;		/* of the job, on nodes with such GPUs, that are near none of these */
};
struct device_distance device_distance(const job_record_t *job);

#endif
