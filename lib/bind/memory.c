/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "base/file.h"
#include "hwview/machine.h"
#include "shape/tier.h"

struct node {
	hwloc_obj_t obj;
	struct tier_facts facts;
	enum tier tier;
};

struct node_list {
	hwloc_topology_t t;
	struct node *list;
	unsigned n;
};

/* The greatest bandwidth from any PUs: that from its own. */
static uint64_t own_bandwidth(hwloc_topology_t t, hwloc_obj_t numa)
{
	struct hwloc_location from[64];
	hwloc_uint64_t value[64], most = 0;
	unsigned n = 64;

	if (hwloc_memattr_get_initiators(t, HWLOC_MEMATTR_ID_BANDWIDTH, numa, 0, &n, from, value))
		return 0;
	for (unsigned i = 0; i < n && i < 64; i++)
		most = value[i] > most ? value[i] : most;
	return most;
}

static int list_read(hwloc_topology_t t, struct node_list *out)
{
	int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);

	*out = (struct node_list){ .t = t, .n = n > 0 ? n : 0 };
	if (!(out->list = calloc(out->n + 1, sizeof(*out->list))))
		return -1;
	for (unsigned i = 0; i < out->n; i++) {
		struct node *node = &out->list[i];

		node->obj = hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, i);
		node->facts = (struct tier_facts){ .subtype = node->obj->subtype,
			.dax = hwloc_obj_get_info_by_name(node->obj, "DAXType"),
			.bandwidth = own_bandwidth(t, node->obj) };
	}
	for (unsigned i = 0; i < out->n; i++) {
		struct tier_facts *f = &out->list[i].facts;

		for (unsigned k = 0; k < out->n; k++) {
			const struct tier_facts *o = &out->list[k].facts;

			if (k != i && o->bandwidth && tier_is_plain(o) && (!f->other || o->bandwidth < f->other) &&
			    hwloc_bitmap_intersects(out->list[i].obj->cpuset, out->list[k].obj->cpuset))
				f->other = o->bandwidth;
		}
		out->list[i].tier = tier_of(f);
	}
	return 0;
}

/* How well a node serves a PU: greater is better. By an attribute of hwloc, by its size, or all equally. */
enum { BY_SIZE = -1, EQUALLY = -2 };

struct merit {
	bool known;
	uint64_t value;
};

static struct merit merit_of(hwloc_topology_t t, int by, const struct node *node, hwloc_obj_t pu)
{
	struct hwloc_location from = { .type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = pu->cpuset };
	hwloc_uint64_t value = 0;
	bool known;

	if (by < 0)
		return (struct merit){ true, by == BY_SIZE ? node->obj->attr->numanode.local_memory : 0 };
	known = !hwloc_memattr_get_value(t, by, node->obj, &from, 0, &value);
	value = known ? value : 0;
	return (struct merit){ known, by == HWLOC_MEMATTR_ID_LATENCY ? UINT64_MAX - value : value };
}

#define TIER(t) (1u << (t))
#define NORMAL { EQUALLY, (1u << TIER_COUNT) - 1, NULL }
#define ANY_BUT_GPU ((1u << TIER_COUNT) - 1 - TIER(TIER_GPU))

static const struct want {
	int by;			/* hwloc_memattr_id_t, BY_SIZE or EQUALLY */
	unsigned tiers;
	const char *name;	/* NULL: that there is none is no error */
} wants[] = {
	[MEMORY_OFF] = NORMAL, [MEMORY_LOCAL] = NORMAL, [MEMORY_BIND] = NORMAL, [MEMORY_INTERLEAVE] = NORMAL,
	[MEMORY_HBM] = { EQUALLY, TIER(TIER_HBM), "HBM" },
	[MEMORY_DRAM] = { EQUALLY, TIER(TIER_DRAM), "DRAM" },
	[MEMORY_CAPACITY] = { BY_SIZE, ANY_BUT_GPU, "memory" },
	[MEMORY_BANDWIDTH] = { HWLOC_MEMATTR_ID_BANDWIDTH, ANY_BUT_GPU, "memory" },
	[MEMORY_LATENCY] = { HWLOC_MEMATTR_ID_LATENCY, ANY_BUT_GPU, "memory" },
};

/* A machine that states the memory of no NUMA node has some in each. */
static bool has_memory(const struct node_list *l, const struct node *node)
{
	return node->obj->attr->numanode.local_memory || !hwloc_get_root_obj(l->t)->total_memory;
}

static bool serves(const struct node_list *l, const struct want *w, const struct node *node, hwloc_obj_t pu)
{
	return w->tiers & TIER(node->tier) && has_memory(l, node) &&
	       hwloc_bitmap_isset(node->obj->cpuset, pu->os_index);
}

/* Less than 0: a is better; 0: both serve equally. */
static int compare(const struct node *a, struct merit am, const struct node *b, struct merit bm)
{
	return COMPARE(bm.value, am.value) ?:
	       hwloc_bitmap_weight(a->obj->cpuset) - hwloc_bitmap_weight(b->obj->cpuset) ?:
	       (int) a->tier - (int) b->tier;
}

/* Adds a PU's best node, of several that serve equally all. Their number, or -1 if they cannot be compared. */
static int add_best(const struct node_list *l, const struct want *w, hwloc_obj_t pu, hwloc_bitmap_t out)
{
	const struct node *best = NULL;
	struct merit most = {0}, m;
	bool known = true;
	int n = 0, added = 0;

	for (unsigned i = 0; i < l->n; i++)
		if (serves(l, w, &l->list[i], pu)) {
			m = merit_of(l->t, w->by, &l->list[i], pu);
			known &= m.known;
			if (!n++ || compare(&l->list[i], m, best, most) < 0) {
				best = &l->list[i];
				most = m;
			}
		}
	if (n > 1 && !known)
		return -1;
	for (unsigned i = 0; n && i < l->n; i++)
		if (serves(l, w, &l->list[i], pu) &&
		    !compare(&l->list[i], merit_of(l->t, w->by, &l->list[i], pu), best, most)) {
			hwloc_bitmap_set(out, l->list[i].obj->os_index);
			added++;
		}
	return added;
}

/* Where all memory that is local to a PU is none: the nearest of the first tier. */
static int add_remote(const struct node_list *l, hwloc_obj_t pu, hwloc_bitmap_t out)
{
	hwloc_bitmap_t near = hwloc_bitmap_alloc();
	enum tier first = TIER_COUNT;
	int rc = near ? 0 : -1;

	for (unsigned i = 0; i < l->n; i++)
		if (has_memory(l, &l->list[i]) && l->list[i].tier < first)
			first = l->list[i].tier;
	for (unsigned i = 0; !rc && i < l->n; i++)
		if (has_memory(l, &l->list[i]) && l->list[i].tier == first)
			rc = hwloc_bitmap_set(near, l->list[i].obj->os_index);
	rc = rc || machine_nearest(pu, near) || hwloc_bitmap_or(out, out, near);
	hwloc_bitmap_free(near);
	return rc;
}

int memory_nodes_choose(hwloc_topology_t t, enum bind_memory wanted, hwloc_const_bitmap_t pus, hwloc_bitmap_t out,
	struct err *e)
{
	const struct want *w = &wants[wanted];
	struct node_list l;
	hwloc_obj_t pu = NULL;
	int rc = 0;

	hwloc_bitmap_zero(out);
	if (list_read(t, &l))
		return err_set(e, "out of memory");
	while (!rc && (pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu))) {
		int n;

		if (!hwloc_bitmap_isset(pus, pu->os_index))
			continue;
		if ((n = add_best(&l, w, pu, out)) < 0)
			rc = err_set(e, "the topology does not state the %s of all memory that is local to its cores",
				     wanted == MEMORY_LATENCY ? "latency" : "bandwidth");
		/* Where the PU is, though the memory there is none. */
		for (unsigned i = 0; !n && wanted == MEMORY_OFF && i < l.n; i++)
			if (hwloc_bitmap_isset(l.list[i].obj->cpuset, pu->os_index))
				hwloc_bitmap_set(out, l.list[i].obj->os_index);
		if (!n && wanted != MEMORY_OFF && !w->name && add_remote(&l, pu, out))
			rc = err_set(e, "out of memory");
	}
	if (!rc && w->name && hwloc_bitmap_iszero(out))
		rc = err_set(e, "no %s is local to its cores", w->name);
	free(l.list);
	return rc;
}

void memory_nodes_tiers(hwloc_topology_t t, hwloc_const_bitmap_t nodes, char *out, size_t size)
{
	unsigned all = 0, has = 0;
	struct node_list l;
	size_t len = 0;

	*out = '\0';
	if (list_read(t, &l))
		return;
	for (unsigned i = 0; i < l.n; i++) {
		all |= TIER(l.list[i].tier);
		if (hwloc_bitmap_isset(nodes, l.list[i].obj->os_index))
			has |= TIER(l.list[i].tier);
	}
	free(l.list);
	for (unsigned tier = 0; tier < TIER_COUNT && (all & (all - 1)) && len < size; tier++)
		if (has & TIER(tier))
			len += snprintf(out + len, size - len, "%s%s", len ? "+" : "", tier_name(tier));
}

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

int memory_bind(hwloc_topology_t t, const struct bind_request *r, hwloc_const_bitmap_t task, struct err *e)
{
	hwloc_const_bitmap_t pus = r->scope == SCOPE_JOB ? hwloc_topology_get_topology_cpuset(t) : task;
	static const int modes[] = {
		[MEMORY_LOCAL] = MPOL_LOCAL, [MEMORY_BIND] = MPOL_BIND, [MEMORY_INTERLEAVE] = MPOL_INTERLEAVE,
	};
	hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
	int rc;

	if (!wanted)
		return err_set(e, "out of memory");
	if (memory_nodes_choose(t, r->memory, pus, wanted, e) || keep_allowed(wanted, e))
		rc = -1;
	else if (r->memory != MEMORY_LOCAL && hwloc_bitmap_iszero(wanted))
		rc = err_set(e, "the task's cpuset has no NUMA node local to its cores");
	else if (r->memory < sizeof(modes) / sizeof(*modes))
		rc = set_policy(modes[r->memory], wanted, e);
	else
		rc = r->memory_strict ? set_policy(MPOL_BIND, wanted, e) : prefer(wanted, true, e);
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

enum { MAPS_MAX = 64 << 20, WORD_BITS = 8 * sizeof(unsigned long), WORDS = PAGES_NODES / WORD_BITS };

void pages_add(const char *numa_maps, struct pages *sum)
{
	for (size_t len; *numa_maps; numa_maps += len + (numa_maps[len] == '\n')) {
		len = strcspn(numa_maps, "\n");
		/* One mapping: "... N0=12 N3=4 kernelpagesize_kB=4". */
		static const char size_key[] = "kernelpagesize_kB=";
		const char *end = numa_maps + len, *size = memmem(numa_maps, len, size_key, sizeof(size_key) - 1);
		uint64_t each = size ? strtoul(size + sizeof(size_key) - 1, NULL, 10) : 0;

		for (const char *at = numa_maps; each && (at = memmem(at, end - at, " N", 2)); at += 2) {
			unsigned node;
			uint64_t pages;

			if (sscanf(at, " N%u=%lu", &node, &pages) == 2 && node < PAGES_NODES)
				sum->kib[node] += pages * each;
		}
	}
}

int pages_read(pid_t pid, struct pages *sum, struct err *e)
{
	struct buf maps = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int) pid);
	if (file_read(path, MAPS_MAX, &maps, e))
		return -1;
	pages_add(maps.data, sum);
	buf_free(&maps);
	return 0;
}

int pages_move(pid_t pid, hwloc_const_bitmap_t all, hwloc_const_bitmap_t to, struct err *e)
{
	unsigned long from[WORDS], target[WORDS];

	for (unsigned i = 0; i < WORDS; i++) {
		target[i] = hwloc_bitmap_to_ith_ulong(to, i);
		from[i] = hwloc_bitmap_to_ith_ulong(all, i) & ~target[i];
	}
	/* Its maxnode counts from 1: bits up to maxnode - 1 are read. */
	if (syscall(SYS_migrate_pages, pid, PAGES_NODES + 1, from, target) < 0)
		return err_set(e, "process %d: migrate_pages: %s", (int) pid,
			       errno == EPERM ? "not your process, or NUMA nodes that it may not use" :
			       errno == EINVAL ? "NUMA nodes that this node does not have, or may not be used" :
			       strerror(errno));
	return 0;
}
