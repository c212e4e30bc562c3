/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * An MPI program in which each rank tells where it is bound, in the order of ranks: rank, host, package, NUMA node,
 * core, CPUs.
 */
#include <hwloc.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 256 };

static int index_around(hwloc_topology_t t, hwloc_const_cpuset_t set, hwloc_obj_type_t type)
{
	hwloc_obj_t o = hwloc_get_next_obj_covering_cpuset_by_type(t, set, type, NULL);

	return o ? (int) o->logical_index : -1;
}

static int memory_of(hwloc_topology_t t, hwloc_const_cpuset_t set)
{
	hwloc_obj_t n = NULL;

	while ((n = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, n)))
		if (hwloc_bitmap_isincluded(set, n->cpuset))
			return (int) n->os_index;
	return -1;
}

static int describe(int rank, char *line)
{
	char host[64] = "", cpus[128];
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	hwloc_topology_t t;

	gethostname(host, sizeof(host) - 1);
	if (hwloc_topology_init(&t) || hwloc_topology_load(t) || hwloc_get_cpubind(t, set, HWLOC_CPUBIND_THREAD)) {
		snprintf(line, LINE, "rank %d host %s: where it is bound cannot be told", rank, host);
		return 1;
	}
	hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), set);
	snprintf(line, LINE, "rank %2d  host %s  package %d  numa %d  core %d  cpus %s", rank, host,
		 index_around(t, set, HWLOC_OBJ_PACKAGE), memory_of(t, set), index_around(t, set, HWLOC_OBJ_CORE),
		 cpus);
	hwloc_topology_destroy(t);
	hwloc_bitmap_free(set);
	return 0;
}

int main(int argc, char **argv)
{
	char line[LINE] = "";
	int rank, ranks, failed;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	failed = describe(rank, line);
	if (rank)
		MPI_Send(line, LINE, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	else
		puts(line);
	for (int r = 1; !rank && r < ranks; r++) {
		MPI_Recv(line, LINE, MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		puts(line);
	}
	MPI_Finalize();
	return failed;
}
