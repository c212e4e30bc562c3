/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwview/restrict.h"

#include "hwview/machine.h"

hwloc_bitmap_t restrict_cpus(hwloc_topology_t t, const char *cores, struct err *e)
{
	hwloc_obj_type_t type = machine_core_type(t);
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	unsigned char *wanted;
	bool failed = false;
	unsigned count;

	if (!set)
		return err_null(e, "out of memory");
	if (!(wanted = machine_select(t, cores, &count, e))) {
		hwloc_bitmap_free(set);
		return NULL;
	}
	for (unsigned i = 0; i < count && !failed; i++)
		failed = wanted[i] && hwloc_bitmap_or(set, set, hwloc_get_obj_by_type(t, type, i)->cpuset);
	free(wanted);
	if (!failed)
		return set;
	err_set(e, "out of memory");
	hwloc_bitmap_free(set);
	return NULL;
}

/*
 * What Slurm allocated to the job is allowed, whatever cgroup the export was made in. HWLOC_ALLOW_FLAG_ALL would allow
 * memory that the export does not have, and hwloc would then leave the topology without any.
 *
 * NUMA nodes that are neither local to these CPUs nor the nearest with memory are removed in a second step:
 * HWLOC_RESTRICT_FLAG_REMOVE_CPULESS aborts where one without CPUs is in a part of the machine of which nothing is
 * removed (hwloc 2.9, topology.c, restrict_object_by_cpuset). They all stay where nothing is cut.
 */
static int topology_cut(hwloc_topology_t t, hwloc_const_bitmap_t cpus)
{
	hwloc_obj_t root = hwloc_get_root_obj(t);
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc(), filled = hwloc_bitmap_alloc(), near = hwloc_bitmap_alloc();
	int rc = nodes && filled && near ? 0 : -1;

	rc = rc || hwloc_topology_allow(t, root->cpuset, root->nodeset, HWLOC_ALLOW_FLAG_CUSTOM);
	if (rc || hwloc_bitmap_isincluded(root->cpuset, cpus))
		goto out;
	rc = hwloc_topology_restrict(t, cpus, 0);
	for (hwloc_obj_t o = NULL; !rc && (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));) {
		rc |= hwloc_bitmap_iszero(o->cpuset) ? 0 : hwloc_bitmap_set(nodes, o->os_index);
		rc |= o->attr->numanode.local_memory ? hwloc_bitmap_set(filled, o->os_index) : 0;
	}
	for (hwloc_obj_t o = NULL; !rc && (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, o));)
		rc = hwloc_bitmap_copy(near, filled) || machine_nearest(o, near) || hwloc_bitmap_or(nodes, nodes, near);
	if (!rc && !hwloc_bitmap_iszero(nodes))
		rc = hwloc_topology_restrict(t, nodes, HWLOC_RESTRICT_FLAG_BYNODESET);
out:
	hwloc_bitmap_free(nodes);
	hwloc_bitmap_free(filled);
	hwloc_bitmap_free(near);
	return rc ? -1 : 0;
}

int restrict_topology(hwloc_topology_t t, const char *cores, struct err *e)
{
	hwloc_bitmap_t cpus = restrict_cpus(t, cores, e);
	int rc = 0;

	if (!cpus)
		return -1;
	if (topology_cut(t, cpus))
		rc = err_set(e, "hwloc cannot restrict the topology to cores %.200s: %s", cores, strerror(errno));
	else if (!hwloc_bitmap_isequal(hwloc_topology_get_topology_cpuset(t), cpus))
		rc = err_set(e, "hwloc restricted the topology to CPUs other than those of cores %.200s", cores);
	hwloc_bitmap_free(cpus);
	return rc;
}

int restrict_to_cpus(hwloc_topology_t t, hwloc_const_bitmap_t cpus, struct err *e)
{
	return topology_cut(t, cpus) ? err_set(e, "hwloc cannot restrict the topology: %s", strerror(errno)) : 0;
}
