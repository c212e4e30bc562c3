/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "bind/memory.h"
#include "bind/vars.h"
#include "hwview/machine.h"
#include "odd_machine.h"
#include "table.h"
#include "topology.h"

TEST(finds_near_memory)
{
	static const struct {
		const char *machine, *pus, *nodes;
	} rows[] = {
		{ "pack:2 numa:2 core:2 pu:2", "0", "0" },
		{ "pack:2 numa:2 core:2 pu:2", "3-4", "0-1" },
		{ "pack:2 numa:2 core:2 pu:2", "0,15", "0,3" },
		{ "pack:2 numa:2 core:2 pu:2", "", "" },
		{ "core:4 pu:1", "2", "0" },
		/* Several of the same cores and of one tier. */
		{ "pack:2 [numa(memory=1GB)] [numa(memory=100MB)] core:2 pu:1", "0", "0-1" },
		{ "pack:2 [numa(memory=1GB)] [numa(memory=100MB)] core:2 pu:1", "0-3", "0-3" },
		{ "[numa(memory=1GB)] [numa(memory=1GB)] pack:2 core:2 pu:1", "3", "0-1" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(rows[i].machine);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = bitmap_of(rows[i].pus), near = hwloc_bitmap_alloc();
		char told[64];

		assert_int_equal(memory_nodes_choose(t, MEMORY_LOCAL, pus, near, NULL), 0);
		hwloc_bitmap_list_snprintf(told, sizeof(told), near);
		assert_string_equal(told, rows[i].nodes);
	}
}

/*
 * By the tables that the machine was made from: for each PU the NUMA nodes with memory of the narrowest domain around
 * it, or if none is around it the nearest that have memory.
 */
static void memory_of_odd_machine(unsigned seed)
{
	struct odd_machine m;
	uint64_t pus, wanted = 0, place = 0, all = 0, stated = 0;
	hwloc_bitmap_t task, out = hwloc_bitmap_alloc();
	hwloc_topology_t t;

	odd_make(&m, seed);
	assert_non_null(t = machine_load(m.xml.data, m.xml.len, &err));
	task = hwloc_bitmap_alloc();
	pus = 0;
	for (unsigned c = 0; c < m.cores; c++)
		pus |= odd_random(&m, 2) ? m.core[c].pus : 0;
	for (unsigned i = 0; i < ODD_PUS; i++)
		if (pus >> i & 1)
			hwloc_bitmap_set(task, i);
	for (unsigned i = 0; i < m.numas; i++)
		stated |= m.numa[i].memory;
	for (unsigned i = 0; i < m.numas; i++)
		all |= m.numa[i].memory || !stated ? UINT64_C(1) << i : 0;
	for (unsigned c = 0; c < m.cores; c++) {
		uint64_t near = 0, around = 0;
		unsigned least = ODD_PUS + 1;

		if (!(m.core[c].pus & pus))
			continue;
		for (unsigned i = 0; i < m.numas; i++) {
			unsigned size = __builtin_popcountl(m.numa[i].pus);

			around |= m.numa[i].pus & m.core[c].pus ? UINT64_C(1) << i : 0;
			if (!(all >> i & 1) || !(m.numa[i].pus & m.core[c].pus) || size > least)
				continue;
			near = (size < least ? 0 : near) | UINT64_C(1) << i;
			least = size;
		}
		wanted |= near ? near : odd_nearest(&m, c, all);
		place |= near ? near : around;
	}
	if (memory_nodes_choose(t, MEMORY_BIND, task, out, &err) || hwloc_bitmap_to_ith_ulong(out, 0) != wanted)
		fail_msg("seed %u: %lx, expected %lx", seed, hwloc_bitmap_to_ith_ulong(out, 0), (unsigned long) wanted);
	if (memory_nodes_choose(t, MEMORY_OFF, task, out, &err) || hwloc_bitmap_to_ith_ulong(out, 0) != place)
		fail_msg("seed %u: in %lx, expected %lx", seed, hwloc_bitmap_to_ith_ulong(out, 0),
			 (unsigned long) place);
	hwloc_bitmap_free(task);
	hwloc_bitmap_free(out);
	hwloc_topology_destroy(t);
	buf_free(&m.xml);
}

TEST(finds_memory_of_odd_machines)
{
	for (unsigned seed = 0; seed < 300; seed++)
		memory_of_odd_machine(seed);
}

/* Machines of tests/rig/made_machines.py, smaller: for each NUMA node by its logical number. */
static const struct machine {
	const char *synthetic;
	struct {
		const char *subtype;	/* NULL: none */
		unsigned bandwidth, latency;	/* 0: the topology does not state it */
	} nodes[4];
} knl = { "[numa(memory=96GiB)] [numa(memory=16GiB)] core:4 pu:1", { { NULL, 115, 130 }, { "MCDRAM", 460, 155 } } },
  knl_unmeasured = { "[numa(memory=96GiB)] [numa(memory=16GiB)] core:4 pu:1", { { NULL, 0, 0 }, { "MCDRAM", 0, 0 } } },
  hbm_first = { "[numa(memory=16GiB)] [numa(memory=96GiB)] core:4 pu:1", { { "HBM", 460, 155 }, { NULL, 115, 130 } } },
  max = { "pack:2 [numa(memory=64GiB)] [numa(memory=16GiB)] core:2 pu:1",
	  { { "DRAM", 76, 110 }, { "HBM", 256, 130 }, { "DRAM", 76, 110 }, { "HBM", 256, 130 } } },
  max_plain = { "pack:2 [numa(memory=64GiB)] [numa(memory=16GiB)] core:2 pu:1",
		{ { NULL, 76, 110 }, { NULL, 256, 130 }, { NULL, 76, 110 }, { NULL, 256, 130 } } },
  grace = { "[numa(memory=480GiB)] [numa(memory=960GiB)] core:4 pu:1",
	    { { NULL, 500, 700 }, { "GPUMemory", 900, 200 } } },
  cxl = { "[numa(memory=128GiB)] [numa(memory=256GiB)] core:4 pu:1", { { NULL, 300, 100 }, { "CXL-DRAM", 50, 250 } } },
  nvm = { "pack:2 [numa(memory=700GiB)] group:2 [numa(memory=96GiB)] core:2 pu:1", { { NULL, 0, 0 } } },
  plain = { "pack:2 [numa(memory=8GiB)] core:2 pu:1", { { NULL, 0, 0 } } };

static hwloc_topology_t load_machine(const struct machine *m)
{
	hwloc_topology_t t = synthetic_load(m->synthetic);
	int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);

	for (int i = 0; i < n && i < (int) ROWS(m->nodes); i++) {
		hwloc_obj_t node = hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, i);
		struct hwloc_location near = { .type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = node->cpuset };

		if (m->nodes[i].subtype)
			node->subtype = strdup(m->nodes[i].subtype);
		if (m->nodes[i].bandwidth)
			assert_int_equal(hwloc_memattr_set_value(t, HWLOC_MEMATTR_ID_BANDWIDTH, node, &near, 0,
								 m->nodes[i].bandwidth), 0);
		if (m->nodes[i].latency)
			assert_int_equal(hwloc_memattr_set_value(t, HWLOC_MEMATTR_ID_LATENCY, node, &near, 0,
								 m->nodes[i].latency), 0);
	}
	return t;
}

TEST(chooses_a_tier_by_its_facts)
{
	static const struct {
		const struct machine *machine;
		const char *pus;
		enum bind_memory wanted;
		const char *nodes, *error;	/* nodes: by their logical number */
	} rows[] = {
		{ &knl, "0", MEMORY_LOCAL, "0", NULL }, { &knl, "0", MEMORY_BIND, "0", NULL },
		{ &knl, "0-3", MEMORY_HBM, "1", NULL }, { &knl, "0-3", MEMORY_DRAM, "0", NULL },
		{ &knl, "0-3", MEMORY_CAPACITY, "0", NULL }, { &knl, "0-3", MEMORY_BANDWIDTH, "1", NULL },
		{ &knl, "0-3", MEMORY_LATENCY, "0", NULL },
		{ &hbm_first, "0", MEMORY_LOCAL, "1", NULL }, { &hbm_first, "2-3", MEMORY_INTERLEAVE, "1", NULL },
		{ &hbm_first, "0", MEMORY_HBM, "0", NULL }, { &hbm_first, "0", MEMORY_DRAM, "1", NULL },
		{ &knl_unmeasured, "0", MEMORY_HBM, "1", NULL },
		{ &knl_unmeasured, "0", MEMORY_BANDWIDTH, "", "does not state the bandwidth of all memory" },
		{ &knl_unmeasured, "0", MEMORY_LATENCY, "", "does not state the latency of all memory" },
		{ &max, "0-1", MEMORY_HBM, "1", NULL }, { &max, "1-2", MEMORY_HBM, "1,3", NULL },
		{ &max, "3", MEMORY_BANDWIDTH, "3", NULL }, { &max, "0,3", MEMORY_LATENCY, "0,2", NULL },
		{ &max, "2", MEMORY_BIND, "2", NULL },
		{ &max_plain, "0-1", MEMORY_HBM, "1", NULL }, { &max_plain, "0-3", MEMORY_DRAM, "0,2", NULL },
		/* GPU memory is nobody's unless named to the kernel, however large and fast. */
		{ &grace, "0", MEMORY_LOCAL, "0", NULL }, { &grace, "0", MEMORY_CAPACITY, "0", NULL },
		{ &grace, "0", MEMORY_BANDWIDTH, "0", NULL }, { &grace, "0", MEMORY_LATENCY, "0", NULL },
		{ &grace, "0", MEMORY_HBM, "", "no HBM is local to its cores" },
		{ &cxl, "0", MEMORY_CAPACITY, "1", NULL }, { &cxl, "0", MEMORY_BANDWIDTH, "0", NULL },
		{ &cxl, "0", MEMORY_DRAM, "0", NULL },
		{ &nvm, "0", MEMORY_CAPACITY, "2", NULL }, { &nvm, "0-7", MEMORY_LOCAL, "0-1,3-4", NULL },
		{ &plain, "0", MEMORY_BANDWIDTH, "0", NULL }, { &plain, "0,3", MEMORY_LATENCY, "0-1", NULL },
		{ &plain, "0", MEMORY_HBM, "", "no HBM is local to its cores" },
		{ &plain, "", MEMORY_LOCAL, "", NULL }, { &plain, "", MEMORY_CAPACITY, "", "no memory is local" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = load_machine(rows[i].machine);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = bitmap_of(rows[i].pus), nodes = hwloc_bitmap_alloc();
		struct err e = {""};
		char told[64];
		int rc = memory_nodes_choose(t, rows[i].wanted, pus, nodes, &e);

		hwloc_bitmap_list_snprintf(told, sizeof(told), nodes);
		if (rc != (rows[i].error ? -1 : 0) || (rows[i].error && !strstr(e.text, rows[i].error)) ||
		    (!rc && strcmp(told, rows[i].nodes)))
			fail_msg("row %zu: %d, nodes '%s', '%s'", i, rc, told, e.text);
	}
}

TEST(names_the_tiers)
{
	static const struct {
		const struct machine *machine;
		const char *nodes, *text;
	} rows[] = {
		{ &knl, "0", "dram" }, { &knl, "1", "hbm" }, { &knl, "0-1", "dram+hbm" }, { &max_plain, "3", "hbm" },
		{ &grace, "1", "gpu" }, { &cxl, "1", "cxl" }, { &plain, "0", "" }, { &knl, "", "" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = load_machine(rows[i].machine);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t nodes = bitmap_of(rows[i].nodes);
		char told[64];

		memory_nodes_tiers(t, nodes, told, sizeof(told));
		assert_string_equal(told, rows[i].text);
	}
}

/*
 * The kernel's word on the pages at p, once they were written to: "bind:0 anon=16 dirty=16 N0=16 kernelpagesize_kB=4".
 */
static void policy_of(const void *p, char *out, size_t size)
{
	FREED(buf_free) struct buf maps = {0};
	char at[32];
	const char *line;

	snprintf(at, sizeof(at), "%08lx ", (unsigned long) p);
	line = file_read("/proc/self/numa_maps", 1 << 22, &maps, NULL) ? NULL : strstr(maps.data, at);
	if (line)
		line += strlen(at);
	snprintf(out, size, "%.*s", line ? (int) strcspn(line, "\n") : 0, line ? line : "");
}

/* A mapping of its own, which the kernel joins with no other. */
static char *map_apart(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || mprotect(p + page, size, PROT_READ | PROT_WRITE) ? NULL : p + page;
}

enum { PAGES = 16 };

/* In a process of its own: a policy stays. 0, or what is wrong is said. */
static int check(hwloc_topology_t t, const struct bind_request *r, const char *wanted)
{
	size_t size = PAGES * sysconf(_SC_PAGESIZE);
	char now[64] = "", page[256] = "";
	struct err e = {""};
	char *p = NULL;

	if (!(r->mems ? memory_follow(t, r->mems, hwloc_topology_get_topology_cpuset(t), &e) :
			memory_bind(t, r, hwloc_topology_get_topology_cpuset(t), &e)) &&
	    !memory_policy_text(now, sizeof(now), &e))
		p = map_apart(size);
	if (p) {
		memset(p, 1, size);
		policy_of(p, page, sizeof(page));
	}
	/* numa_maps says "prefer" for both kinds of preference. */
	if (!strcmp(now, wanted) && (!strncmp(page, wanted, strlen(wanted)) ||
				     (!strncmp(wanted, "prefer", 6) && !strncmp(page, "prefer", 6))))
		return 0;
	print_error("'%s' and '%s', not '%s' %s\n", now, page, wanted, e.text);
	return 1;
}

TEST(sets_what_the_kernel_tells)
{
	static const struct {
		struct bind_request r;
		const char *mode, *nodes_of;	/* nodes_of: "" none */
	} rows[] = {
		{ { .memory = MEMORY_LOCAL }, "local", "" },
		{ { .memory = MEMORY_BIND }, "bind", ":" },
		{ { .memory = MEMORY_INTERLEAVE }, "interleave", ":" },
		{ { .memory = MEMORY_INTERLEAVE, .scope = SCOPE_JOB }, "interleave", ":" },
		{ { .memory = MEMORY_DRAM }, "preferred", ":" },
		{ { .memory = MEMORY_CAPACITY, .scope = SCOPE_JOB }, "preferred", ":" },
		{ { .memory = MEMORY_DRAM, .memory_strict = true }, "bind", ":" },
		{ { .mems = MEMS_PREFER }, "preferred", ":" },
		{ { .mems = MEMS_STRICT }, "bind", ":" },
	};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(NULL);
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t near = hwloc_bitmap_alloc();
	char nodes[64], told[128];

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0UL, NULL, 0UL) && errno == ENOSYS)
		skip();
	assert_int_equal(memory_nodes_choose(t, MEMORY_LOCAL, hwloc_topology_get_topology_cpuset(t), near, NULL), 0);
	hwloc_bitmap_list_snprintf(nodes, sizeof(nodes), near);
	for (size_t i = 0; i < ROWS(rows); i++) {
		int status;
		pid_t child = fork();

		snprintf(told, sizeof(told), "%s%s%s", rows[i].mode, rows[i].nodes_of, *rows[i].nodes_of ? nodes : "");
		if (!child)
			_exit(check(t, &rows[i].r, told));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(memory_policy_text(told, sizeof(told), NULL), 0);
	assert_string_equal(told, "default");
}

TEST(refuses_memory_of_others)
{
	static const struct bind_request bind = { .memory = MEMORY_BIND };
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("numa:64 pu:1");
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t last = bitmap_of("63");
	struct err e = {""};
	char told[64];

	assert_int_equal(memory_bind(t, &bind, last, &e), -1);
	assert_non_null(strstr(e.text, "the task's cpuset has no NUMA node local to its cores"));
	assert_int_equal(memory_policy_text(told, sizeof(told), NULL), 0);
	assert_string_equal(told, "default");
}

static bool has(const char *file, const char *word)
{
	FREED(buf_free) struct buf text = {0};
	bool found = !file_read(file, 4096, &text, NULL) && strstr(text.data, word);

	return found;
}

#define THP "/sys/kernel/mm/transparent_hugepage/enabled"

TEST(adds_to_tunables)
{
	static const struct {
		const char *now, *new;
	} rows[] = {
		{ NULL, "glibc.malloc.hugetlb=1" },
		{ "", "glibc.malloc.hugetlb=1" },
		{ "glibc.malloc.check=1", "glibc.malloc.check=1:glibc.malloc.hugetlb=1" },
		{ "glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=0" },
		{ "glibc.malloc.hugetlb=2:glibc.malloc.check=1", "glibc.malloc.hugetlb=2:glibc.malloc.check=1" },
	};
	char out[64] = "before", small[16] = "before";

	if (has(THP, "[never]") || access(THP, R_OK)) {
		assert_int_equal(huge_tunables(HUGE_THP, NULL, out, sizeof(out), &err), -1);
		assert_string_equal(out, "before");
		return;
	}
	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_int_equal(huge_tunables(HUGE_THP, rows[i].now, out, sizeof(out), &err), 0);
		assert_string_equal(out, rows[i].new);
	}
	assert_int_equal(huge_tunables(HUGE_THP, NULL, small, sizeof(small), &err), -1);
	assert_string_equal(small, "before");
}

/* malloc would go on with small pages in silence. */
TEST(wants_huge_pages_that_are_there)
{
	char out[64] = "before";
	struct err e = {""};

	if (!has("/proc/sys/vm/nr_hugepages", "0\n") || !has("/proc/sys/vm/nr_overcommit_hugepages", "0\n"))
		skip();
	assert_int_equal(huge_tunables(HUGE_TLB, NULL, out, sizeof(out), &e), -1);
	assert_non_null(strstr(e.text, "no huge pages are free"));
	assert_string_equal(out, "before");
#define POOL_1G "/sys/kernel/mm/hugepages/hugepages-1048576kB/"
	if (has(POOL_1G "nr_hugepages", "0\n") || access(POOL_1G, R_OK)) {
		assert_int_equal(huge_tunables(HUGE_1G, NULL, out, sizeof(out), &e), -1);
		assert_non_null(strstr(e.text, "no huge pages of 1 GiB are free"));
	}
}

TESTS_MAIN(NULL, NULL)
