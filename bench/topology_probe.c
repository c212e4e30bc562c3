/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * A program that wants its topology, and ends when it has it: by hwloc as its environment says, from an image of
 * hwloc's own as launchers use them, or not at all. topology_probe_ours.c asks libtopiary, too, and fails where that is
 * not the quickest way.
 */
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/shmem.h>
#include <unistd.h>

#include "base/std.h"

#ifdef TOPIARY
#include "app/topiary.h"
#endif

static hwloc_topology_t topology;

static int empty(char **argv)
{
	(void) argv;
	return 0;
}

static int load(char **argv)
{
	(void) argv;
	return hwloc_topology_init(&topology) ||
		hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		hwloc_topology_load(topology);
}

/* FILE ADDRESS LENGTH */
static int adopt(char **argv)
{
	int fd = open(argv[0], O_RDONLY);

	return hwloc_shmem_topology_adopt(&topology, fd, 0, (void *) strtoul(argv[1], NULL, 16),
					  strtoul(argv[2], NULL, 10), 0);
}

#ifdef TOPIARY
static int ours(char **argv)
{
	(void) argv;
	return topiary_topology_load(&topology, 0) != TOPIARY_SHMEM;
}
#endif

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*way)(char **argv);
	} ways[] = {
		{ "empty", empty }, { "load", load }, { "adopt", adopt },
#ifdef TOPIARY
		{ "ours", ours },
#endif
	};

	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name))
			_exit(ways[i].way(argv + 2) ? 1 : 0);
	return 2;
}
