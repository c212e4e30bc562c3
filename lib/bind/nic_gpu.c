/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "bind/gpu.h"
#include "bind/nic.h"

static bool is_above(hwloc_obj_t bridge, hwloc_obj_t function)
{
	while (function && function != bridge)
		function = function->parent;
	return function;
}

/* Devices that share no more than a host bridge reach each other through the processor. */
static unsigned shared_depth(hwloc_obj_t gpu, hwloc_obj_t nic)
{
	for (hwloc_obj_t o = gpu->parent; o && o->type == HWLOC_OBJ_BRIDGE; o = o->parent)
		if (o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI && is_above(o, nic))
			return o->attr->bridge.depth;
	return 0;
}

unsigned *nics_beside_gpus(hwloc_topology_t t, const struct nics *n, const char *gpus, const uint64_t *which,
			   unsigned ntasks)
{
	unsigned *beside = calloc((size_t) ntasks * n->n + 1, sizeof(*beside)), count = gpu_count(gpus);
	bool any = false;

	for (unsigned g = 0; beside && g < count; g++) {
		hwloc_obj_t gpu = gpu_function(t, gpus, g);

		for (unsigned i = 0; gpu && i < n->n; i++) {
			const struct nic *d = &n->nic[i];
			hwloc_obj_t nic = hwloc_get_pcidev_by_busid(t, d->domain, d->bus, d->slot, d->function);
			unsigned depth = nic ? shared_depth(gpu, nic) : 0;

			any |= depth;
			for (unsigned task = 0; task < ntasks; task++)
				if (which[task] >> g & 1 && depth > beside[(size_t) task * n->n + i])
					beside[(size_t) task * n->n + i] = depth;
		}
	}
	if (any)
		return beside;
	free(beside);
	return NULL;
}
