/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_H
#define TOPIARY_BIND_NIC_H

#include <hwloc.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "bind/request.h"
#include "bind/vars.h"

/*
 * Which network device is near each task. Devices are those of the node's whole topology, because the nearest may be outside of what a
 * step was given; in the order of their PCI bus ids, one a PCI function.
 *
 * As in topo/devices.h: where the node has a fabric, Ethernet beside it is for management, and elsewhere a link much slower than the
 * fastest. What is of no network class (the display of a management controller, its USB port) is none. RoCE beside InfiniBand is
 * another network, too: tasks spread over both could not reach each other.
 */
enum nic_kind { NIC_PSM2, NIC_VERBS, NIC_CXI, NIC_EFA, NIC_ETHERNET, NIC_OTHER, NIC_KINDS };

struct nic {
	char name[64];		/* of the adapter: "hfi1_0", "mlx5_2"; "" of Ethernet, and where the topology does not tell */
	char net[64];		/* of its network interface, "ib0", or "" */
	unsigned domain, bus, slot, function;
	enum nic_kind kind;
	int unit;		/* the number in its name, or -1 */
	unsigned port;		/* the first active one, from 1 */
	char subnet[20];	/* of that port: the first half of its GID, "fe80:0000:0000:0000", or "" */
	bool active;		/* as the topology has it, else assumed */
	hwloc_bitmap_t near;	/* the PUs of the NUMA nodes local to it */
};

struct nics {
	struct nic *nic;
	unsigned n;
	unsigned others;	/* fabric adapters of the node that are not in here */
};

/* 0, or -1: memory. n may be 0. Free with nics_free. */
int nics_find(hwloc_topology_t t, struct nics *out, struct err *e);
void nics_free(struct nics *n);

/* How people call a device: its name, else its interface, else "". */
const char *nic_label(const struct nic *n);

/* What a node's tasks ask for, and which of them asks. */
struct nic_ask {
	hwloc_topology_t topology;	/* of the whole node */
	const struct nics *nics;
	const struct bind_request *request;
	const hwloc_bitmap_t *masks;	/* the PUs of each of the node's tasks */
	unsigned local, nlocal;		/* the task's number among them, and how many they are */
	bool bound;			/* it was us who bound the task to its PUs */
};

/*
 * The device of that kind of each task: the nearest active one, a remote one where none is local; of equals the one with least
 * tasks so far, then in order. Distances are those between NUMA nodes, and packages where they do not differ. chosen[0 ..
 * nlocal-1]: an index, or -1 where there is no active device, or nothing is known of the task's PUs. 0, or -1: memory.
 */
int nics_choose(const struct nic_ask *a, enum nic_kind kind, int *chosen, struct err *e);

/*
 * The task's rails of that kind, as indices, by what is asked: its chosen device, all as near as that one (local), or all active
 * ones (all). 0, or -1: memory.
 */
int nics_rails(const struct nic_ask *a, enum nic_kind kind, const int *chosen, hwloc_bitmap_t rails, struct err *e);

/*
 * Export for the task what makes its stacks use these. What the user, or anybody, set of a stack leaves that stack alone, and
 * a kind whose active devices are in several subnets is never restricted: tasks on one could not reach the others. told: the
 * labels of the task's devices, "mlx5_0,mlx5_1", without kinds of which that is so. 0, or -1: memory.
 */
int nics_export(const struct nic_ask *a, const struct vars *v, struct buf *told, struct err *e);

#endif
