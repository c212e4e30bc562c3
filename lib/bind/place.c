/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place.h"

#include "bind/pu_tree.h"

int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks,
	struct err *e)
{
	struct pu_tree p;
	int rc;

	if (pu_tree_new(t, &p, e))
		return -1;
	if (cpus > p.npus)
		cpus = p.npus;
	if (!p.npus || !ntasks)
		rc = err_set(e, "cannot place %u tasks on %u PUs", ntasks, p.npus);
	else if (r->place == PLACE_MEM)
		rc = place_mem(&p, ntasks, cpus, masks, e);
	else
		rc = place_grid(&p, r, ntasks, cpus ? cpus : 1, masks, e);
	pu_tree_free(&p);
	return rc;
}
