/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bind/memory_nodes.h"

#ifndef MPOL_PREFERRED_MANY		/* linux/mempolicy.h before 5.15 */
#define MPOL_PREFERRED_MANY 5
#endif

/* The kernel's maximum (CONFIG_NODES_SHIFT is at most 10); one with fewer requires the other bits to be zero. */
enum { MAX_NODES = 1024, LONG_BITS = sizeof(long) * CHAR_BIT };

struct nodes {
	unsigned long bits[MAX_NODES / LONG_BITS];
};

static int get_policy(int *mode, struct nodes *nodes, unsigned flags)
{
	memset(nodes, 0, sizeof(*nodes));
	return syscall(SYS_get_mempolicy, mode, nodes->bits, (unsigned long) MAX_NODES, NULL, (unsigned long) flags);
}

static void to_bitmap(const struct nodes *nodes, hwloc_bitmap_t out)
{
	for (unsigned i = 0; i < MAX_NODES / LONG_BITS; i++)
		hwloc_bitmap_set_ith_ulong(out, i, nodes->bits[i]);
}

static int keep_allowed(hwloc_bitmap_t wanted, struct err *e)
{
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	struct nodes nodes;
	int rc = 0;

	if (!allowed)
		return err_set(e, "out of memory");
	if (get_policy(NULL, &nodes, MPOL_F_MEMS_ALLOWED)) {
		rc = err_set(e, "memory policy: %s", strerror(errno));
	} else {
		to_bitmap(&nodes, allowed);
		hwloc_bitmap_and(wanted, wanted, allowed);
	}
	hwloc_bitmap_free(allowed);
	return rc;
}

static int set_policy(int mode, hwloc_const_bitmap_t wanted, struct err *e)
{
	struct nodes nodes;

	for (unsigned i = 0; i < MAX_NODES / LONG_BITS; i++)
		nodes.bits[i] = hwloc_bitmap_to_ith_ulong(wanted, i);
	/* The kernel subtracts one from the number of bits. */
	if (syscall(SYS_set_mempolicy, mode, mode == MPOL_LOCAL ? NULL : nodes.bits,
		    mode == MPOL_LOCAL ? 0UL : MAX_NODES + 1UL))
		return err_set(e, "memory policy: %s", strerror(errno));
	return 0;
}

/* With `one`, Linux before 5.15, which cannot prefer several nodes, prefers the first. */
static int prefer(hwloc_bitmap_t wanted, bool one, struct err *e)
{
	int rc;

	if (hwloc_bitmap_weight(wanted) > 1) {
		rc = set_policy(MPOL_PREFERRED_MANY, wanted, e);
		if (!rc || errno != EINVAL || !one)
			return rc;
		hwloc_bitmap_singlify(wanted);
	}
	return set_policy(MPOL_PREFERRED, wanted, e);
}

static int apply(const struct bind_request *r, hwloc_bitmap_t wanted, struct err *e)
{
	static const int modes[] = {
		[MEMORY_LOCAL] = MPOL_LOCAL, [MEMORY_BIND] = MPOL_BIND, [MEMORY_INTERLEAVE] = MPOL_INTERLEAVE,
	};

	if (keep_allowed(wanted, e))
		return -1;
	if (r->memory != MEMORY_LOCAL && hwloc_bitmap_iszero(wanted))
		return err_set(e, "the task's cpuset has no NUMA node local to its cores");
	if (r->memory < sizeof(modes) / sizeof(*modes))
		return set_policy(modes[r->memory], wanted, e);
	return r->memory_strict ? set_policy(MPOL_BIND, wanted, e) : prefer(wanted, true, e);
}

int memory_bind(hwloc_topology_t t, const struct bind_request *r, hwloc_const_bitmap_t task, struct err *e)
{
	hwloc_const_bitmap_t pus = r->scope == SCOPE_JOB ? hwloc_topology_get_topology_cpuset(t) : task;
	hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
	int rc;

	if (!wanted)
		return err_set(e, "out of memory");
	rc = memory_nodes_choose(t, r->memory, pus, wanted, e) || apply(r, wanted, e);
	hwloc_bitmap_free(wanted);
	return rc ? err_within(e, "--topo-membind is not applied") : 0;
}

int memory_follow(hwloc_topology_t t, enum bind_mems mems, hwloc_const_bitmap_t job, struct err *e)
{
	hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
	int rc;

	if (!wanted)
		return err_set(e, "out of memory");
	if (memory_nodes_choose(t, MEMORY_BIND, job, wanted, e) || keep_allowed(wanted, e))
		rc = -1;
	else if (hwloc_bitmap_iszero(wanted))
		rc = err_set(e, "the cpuset has no NUMA node local to the job's cores");
	else if ((rc = mems == MEMS_STRICT ? set_policy(MPOL_BIND, wanted, e) : prefer(wanted, false, e)) &&
		 mems == MEMS_PREFER && errno == EINVAL)
		err_set(e, "the kernel cannot prefer several NUMA nodes; Linux 5.15 and later can");
	hwloc_bitmap_free(wanted);
	return rc;
}

int memory_policy_text(char *out, size_t size, struct err *e)
{
	static const char *const words[] = { "default", "preferred", "bind", "interleave", "local", "preferred-many",
		"weighted-interleave" };
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	struct nodes nodes;
	unsigned mode;
	char list[256];

	if (!set)
		return err_set(e, "out of memory");
	if (get_policy((int *) &mode, &nodes, 0)) {
		hwloc_bitmap_free(set);
		return err_set(e, "memory policy: %s", strerror(errno));
	}
	to_bitmap(&nodes, set);
	hwloc_bitmap_list_snprintf(list, sizeof(list), set);
	hwloc_bitmap_free(set);
	mode &= ~MPOL_MODE_FLAGS;
	snprintf(out, size, "%s%s%s", mode < sizeof(words) / sizeof(*words) ? words[mode] : "unknown", *list ? ":" : "",
		list);
	return 0;
}
