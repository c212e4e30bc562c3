/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_REACH_H
#define TOPIARY_BIND_NIC_REACH_H

#include "bind/nic.h"

/*
 * The NUMA nodes that have no smaller one within: of memories local to the same PUs the first, and none that stands for the whole
 * machine (memory of a GPU, of an expander) where others divide it.
 */
struct domains {
	hwloc_obj_t *node;
	unsigned n;
};

/* 0, or -1: memory. Free with domains_free. */
int domains_find(hwloc_topology_t t, struct domains *out, struct err *e);
void domains_free(struct domains *d);

/* How far each device is from each domain. */
struct reach {
	const struct nics *nics;
	struct domains domains;
	unsigned long *far;	/* [device * domains.n + domain] */
};

/* 0, or -1: memory. Free with reach_free. */
int reach_find(hwloc_topology_t t, const struct nics *n, struct reach *out, struct err *e);
void reach_free(struct reach *r);

/* 0 where the device is local to one of these PUs. */
unsigned long reach_distance(const struct reach *r, unsigned device, hwloc_const_bitmap_t pus);

#endif
