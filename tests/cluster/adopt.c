/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* What a program of a job gets from libtopiary: the source, whether binding is real, and its PUs. */
#include <stdio.h>
#include <topiary.h>

int main(void)
{
	static const char *const sources[] = { "", "shmem", "xml", "discovery" };
	hwloc_topology_t t;
	int source = topiary_topology_load(&t, 0);
	char pus[4096];

	if (source < 0) {
		perror("adopt");
		return 1;
	}
	hwloc_bitmap_list_snprintf(pus, sizeof(pus), hwloc_topology_get_topology_cpuset(t));
	printf("%s %d %s\n", sources[source], hwloc_topology_is_thissystem(t), pus);
	fputs(topiary_topology_reason(), stderr);
	hwloc_topology_destroy(t);
	return 0;
}
