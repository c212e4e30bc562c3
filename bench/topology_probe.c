/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * A program that wants its topology, and ends when it has it: by hwloc as its environment says, or not at all.
 * topology_probe_ours.c asks libtopiary, too, and fails where that is not the quickest way.
 */
#include <hwloc.h>

#include "base/std.h"

#ifdef TOPIARY
#include "app/topiary.h"
#endif

int main(int argc, char **argv)
{
	const char *way = argc == 2 ? argv[1] : "";
	hwloc_topology_t topology;

	if (!strcmp(way, "empty"))
		_exit(0);
	if (!strcmp(way, "load"))
		_exit(hwloc_topology_init(&topology) ||
		      hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		      hwloc_topology_load(topology));
#ifdef TOPIARY
	if (!strcmp(way, "ours"))
		_exit(topiary_topology_load(&topology, 0) != TOPIARY_SHMEM);
#endif
	return 2;
}
