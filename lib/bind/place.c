/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place.h"

#include "bind/place_parts.h"

int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e)
{
	struct parts p;
	int rc;

	if (parts_of(t, &p, e))
		return -1;
	if (cpus > p.npus)
		cpus = p.npus;
	if (!p.npus || !ntasks)
		rc = err_set(e, "%u tasks on %u PUs: nothing to place", ntasks, p.npus);
	else if (r->place == PLACE_MEM)
		rc = place_mem(&p, ntasks, cpus, masks, e);
	else
		rc = place_seats(&p, r, ntasks, cpus ? cpus : 1, masks, e);
	parts_free(&p);
	return rc;
}
