/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_DISTANCE_H
#define TOPIARY_BIND_NIC_DISTANCE_H

#include "bind/nic.h"

/*
 * Distances between PUs and network devices, for nic_find.c, nic_choose.c and nic_values.c.
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

#endif
