/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_H
#define TOPIARY_BIND_NIC_H

#include <hwloc.h>

#include "base/buf.h"
#include "base/err.h"
#include "bind/request.h"
#include "bind/vars.h"

/*
 * The network devices nearest to each task (--topo-nic), for spank_plugin/task/task.c. Devices are those of the whole
 * node's topology, because the nearest may be outside the step's cores; one for each PCI function, in the order of PCI
 * bus ids.
 *
 * As in shape/strings.h, management links are left out: Ethernet where the node has a fabric, elsewhere links much
 * slower than the fastest, and devices of no network class (the display or USB port of a management controller). RoCE
 * beside InfiniBand is another network, and is left out: tasks spread over both could not reach each other.
 */
enum nic_kind { NIC_PSM2, NIC_VERBS, NIC_CXI, NIC_EFA, NIC_ETHERNET, NIC_OTHER, NIC_KINDS };

struct nic {
	char name[64];		/* of the adapter: "hfi1_0", "mlx5_2"; "" for Ethernet and where unknown */
	char net[64];		/* of its network interface, "ib0", or "" */
	unsigned domain, bus, slot, function;
	enum nic_kind kind;
	int unit;		/* the number in its name, or -1 */
	unsigned port;		/* the first active one, from 1 */
	char subnet[20];	/* of that port: the first half of its GID, "fe80:0000:0000:0000", or "" */
	bool active;		/* from the topology; assumed where it has no port state */
	hwloc_bitmap_t near;	/* the PUs of the NUMA nodes local to it */
};

struct nics {
	struct nic *nic;
	unsigned n;
	unsigned others;	/* fabric adapters of the node that were left out */
};

/* Find the node's devices; n may be 0. 0, or -1: memory. Free with nics_free. */
int nics_find(hwloc_topology_t t, struct nics *out, struct err *e);
void nics_free(struct nics *n);

/* Variables by which users and sites name a task's devices; the last is NULL. nic_vars.c has what documents them. */
extern const char *const nics_variables[];

/*
 * Where the devices that such a variable names are all far from these CPUs, and another of the kind is near:
 * "mlx5_0 (mlx5_1 is near)"; else "".
 */
void nics_describe_far(const struct nics *n, const char *value, hwloc_const_bitmap_t cpus, char *out, size_t size);

/*
 * Labels of devices, "mlx5_0,mlx5_1", each with its locality to some PUs: "mlx5_0 near,mlx5_1 far" (bind/gpu.h).
 * For --topo-report. topology: of the whole node.
 */
void nics_describe(hwloc_topology_t topology, const struct nics *n, const char *labels, hwloc_const_bitmap_t pus,
		   char *out, size_t size);

/* A device's name, else its interface, else "". */
const char *nic_label(const struct nic *n);

/* The options and masks of a node's tasks, and which of them is calling. */
struct nic_request {
	hwloc_topology_t topology;	/* of the whole node */
	const struct nics *nics;
	const struct bind_request *request;
	const hwloc_bitmap_t *masks;	/* the PUs of each of the node's tasks */
	unsigned local, nlocal;		/* the calling task's number, and how many there are */
	bool bound;			/* Topiary, not Slurm, bound the task to its PUs */
	const unsigned *beside;		/* from nics_beside_gpus; NULL: tasks have no GPUs of their own */
};

/*
 * Which devices share a PCI switch with a GPU of each task: beside[task * nics->n + device] is the depth of the deepest
 * bridge that they share, 0 for none. Data between them does not pass through the processor. gpus: ids as in
 * bind/gpu.h; which[task]: a bit for each. NULL: memory, or nothing is shared; the caller frees it.
 */
unsigned *nics_beside_gpus(hwloc_topology_t t, const struct nics *n, const char *gpus, const uint64_t *which,
			   unsigned ntasks);

/*
 * The device of that kind for each task: one beside its GPUs, on the same PCI switch; else the nearest active one, a
 * remote one where none is local; among equally near ones such that the number of tasks per device is as even as
 * possible, then in order. Distances are those between NUMA nodes, and between packages where these are equal.
 * chosen[0 .. nlocal-1]: an index, or -1 where no device is active or the task's PUs are not known. 0, or -1: memory.
 */
int nics_choose(const struct nic_request *a, enum nic_kind kind, int *chosen, struct err *e);

/*
 * The calling task's rails of that kind, as indices: its chosen device; with --topo-nic=local all devices as near as
 * that one; with all every active one. 0, or -1: memory.
 */
int nics_rails(const struct nic_request *a, enum nic_kind kind, const int *chosen, hwloc_bitmap_t rails, struct err *e);

/*
 * Export to the calling task the variables that make its communication stacks use these devices. A stack of which any
 * variable is set already is left alone, and so is a kind whose active devices are in several subnets: tasks on one
 * could not reach the others. names: the labels of the task's devices, "mlx5_0,mlx5_1", without these kinds. 0, or -1:
 * memory.
 */
int nics_export(const struct nic_request *a, const struct bind_vars *v, struct buf *names, struct err *e);

/*
 * Distances between PUs and network devices, for nic_find.c, nic_choose.c, nic_vars.c and place_gpu.c.
 *
 * The innermost NUMA nodes: of memories local to the same PUs the first, and none that is local to the whole machine
 * (memory of a GPU or an expander) where others divide it.
 */
struct nic_domains {
	hwloc_obj_t *node;
	unsigned n;
};

/* 0, or -1: memory. Free with nic_domains_free. */
int nic_domains_find(hwloc_topology_t t, struct nic_domains *out, struct err *e);
void nic_domains_free(struct nic_domains *d);

/* The distance of each device from each NUMA node. */
struct nic_distances {
	const struct nics *nics;
	struct nic_domains domains;
	unsigned long *distance;	/* [device * domains.n + domain] */
};

/* 0, or -1: memory. Free with nic_distances_free. */
int nic_distances_find(hwloc_topology_t t, const struct nics *n, struct nic_distances *out, struct err *e);
void nic_distances_free(struct nic_distances *r);

/* The smallest distance of a device from any of these PUs; 0: local. */
unsigned long nic_distance(const struct nic_distances *r, unsigned device, hwloc_const_bitmap_t pus);

/*
 * The choice of devices for PSM2: Ganapathi, Gopalakrishnan, McGuire, "HPC process and optimal network device
 * affinitization" (IEEE TMSCS 2018), algorithms 1 and 2, over a node's devices of kind NIC_PSM2. here: the PUs of the
 * process. Called by nic_vars.c.
 *
 * Algorithm 1: the unit for a single rail. hfival: the user's, or negative. pick: the index of the device for a
 * process with more than one local device (spread_hfi) or none (select_remote_hfi). The unit, or -1 where none is
 * active.
 */
int psm2_unit(const struct nics *n, int hfival, hwloc_const_bitmap_t here, int pick);

/* Algorithm 2: the rails, as indices, by PSM2_MULTIRAIL. Their number; 0: a single rail, as by psm2_unit. */
int psm2_rails(const struct nics *n, int multirail, hwloc_const_bitmap_t here, hwloc_bitmap_t rails);

#endif
