/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "bind/huge.h"
#include "bind/memory.h"
#include "table.h"

static hwloc_topology_t load(const char *synthetic)
{
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(synthetic ? hwloc_topology_set_synthetic(t, synthetic) : 0, 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	return t;
}

static hwloc_bitmap_t list(const char *text)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	assert_non_null(set);
	assert_int_equal(hwloc_bitmap_list_sscanf(set, text), 0);
	return set;
}

static void finds_near_memory(void **state)
{
	static const struct {
		const char *machine, *pus, *nodes;
	} rows[] = {
		{ "pack:2 numa:2 core:2 pu:2", "0", "0" },
		{ "pack:2 numa:2 core:2 pu:2", "3-4", "0-1" },
		{ "pack:2 numa:2 core:2 pu:2", "0,15", "0,3" },
		{ "pack:2 numa:2 core:2 pu:2", "", "" },
		{ "core:4 pu:1", "2", "0" },
		/* DRAM and HBM of the same cores. */
		{ "pack:2 [numa(memory=1GB)] [numa(memory=100MB)] core:2 pu:1", "0", "0" },
		{ "pack:2 [numa(memory=1GB)] [numa(memory=100MB)] core:2 pu:1", "0-3", "0,2" },
	};

	(void) state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_topology_t t = load(rows[i].machine);
		hwloc_bitmap_t pus = list(rows[i].pus), near = hwloc_bitmap_alloc();
		char told[64];

		memory_local_nodes(t, pus, near);
		hwloc_bitmap_list_snprintf(told, sizeof(told), near);
		assert_string_equal(told, rows[i].nodes);
		hwloc_bitmap_free(pus);
		hwloc_bitmap_free(near);
		hwloc_topology_destroy(t);
	}
}

/*
 * The kernel's word on the pages at p, once they were written to: "bind:0 anon=16 dirty=16 N0=16 kernelpagesize_kB=4".
 */
static void policy_of(const void *p, char *out, size_t size)
{
	struct buf maps = {0};
	char at[32];
	const char *line;

	snprintf(at, sizeof(at), "%08lx ", (unsigned long) p);
	line = file_read("/proc/self/numa_maps", 1 << 22, &maps, NULL) ? NULL : strstr(maps.data, at);
	if (line)
		line += strlen(at);
	snprintf(out, size, "%.*s", line ? (int) strcspn(line, "\n") : 0, line ? line : "");
	buf_free(&maps);
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

	if (!memory_bind(t, r, hwloc_topology_get_topology_cpuset(t), &e) && !memory_policy_text(now, sizeof(now), &e))
		p = map_apart(size);
	if (p) {
		memset(p, 1, size);
		policy_of(p, page, sizeof(page));
	}
	if (!strcmp(now, wanted) && !strncmp(page, wanted, strlen(wanted)))
		return 0;
	print_error("'%s' and '%s', not '%s' %s\n", now, page, wanted, e.text);
	return 1;
}

static void sets_what_the_kernel_tells(void **state)
{
	static const struct {
		struct bind_request r;
		const char *mode, *nodes_of;	/* nodes_of: "" none */
	} rows[] = {
		{ { .memory = MEMORY_LOCAL }, "local", "" },
		{ { .memory = MEMORY_BIND }, "bind", ":" },
		{ { .memory = MEMORY_INTERLEAVE }, "interleave", ":" },
		{ { .memory = MEMORY_INTERLEAVE, .scope = SCOPE_JOB }, "interleave", ":" },
	};
	hwloc_topology_t t = load(NULL);
	hwloc_bitmap_t near = hwloc_bitmap_alloc();
	char nodes[64], told[128];

	(void) state;
	if (syscall(SYS_get_mempolicy, NULL, NULL, 0UL, NULL, 0UL) && errno == ENOSYS)
		skip();
	memory_local_nodes(t, hwloc_topology_get_topology_cpuset(t), near);
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
	hwloc_bitmap_free(near);
	hwloc_topology_destroy(t);
}

static void refuses_memory_of_others(void **state)
{
	static const struct bind_request bind = { .memory = MEMORY_BIND };
	hwloc_topology_t t = load("numa:64 pu:1");
	hwloc_bitmap_t last = list("63");
	struct err e = {""};
	char told[64];

	(void) state;
	assert_int_equal(memory_bind(t, &bind, last, &e), -1);
	assert_non_null(strstr(e.text, "the task's cpuset has no NUMA node local to its cores"));
	assert_int_equal(memory_policy_text(told, sizeof(told), NULL), 0);
	assert_string_equal(told, "default");
	hwloc_bitmap_free(last);
	hwloc_topology_destroy(t);
}

static bool has(const char *file, const char *word)
{
	struct buf text = {0};
	bool found = !file_read(file, 4096, &text, NULL) && strstr(text.data, word);

	buf_free(&text);
	return found;
}

#define THP "/sys/kernel/mm/transparent_hugepage/enabled"

static void adds_to_tunables(void **state)
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
	struct err e = {""};

	(void) state;
	if (has(THP, "[never]") || access(THP, R_OK)) {
		assert_int_equal(huge_tunables(HUGE_THP, NULL, out, sizeof(out), &e), -1);
		assert_string_equal(out, "before");
		return;
	}
	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_int_equal(huge_tunables(HUGE_THP, rows[i].now, out, sizeof(out), &e), 0);
		assert_string_equal(out, rows[i].new);
	}
	assert_int_equal(huge_tunables(HUGE_THP, NULL, small, sizeof(small), &e), -1);
	assert_string_equal(small, "before");
}

/* malloc would go on with small pages in silence. */
static void wants_huge_pages_that_are_there(void **state)
{
	char out[64] = "before";
	struct err e = {""};

	(void) state;
	if (!has("/proc/sys/vm/nr_hugepages", "0\n") || !has("/proc/sys/vm/nr_overcommit_hugepages", "0\n"))
		skip();
	assert_int_equal(huge_tunables(HUGE_TLB, NULL, out, sizeof(out), &e), -1);
	assert_non_null(strstr(e.text, "no huge pages are free"));
	assert_string_equal(out, "before");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_near_memory),
		cmocka_unit_test(sets_what_the_kernel_tells),
		cmocka_unit_test(refuses_memory_of_others),
		cmocka_unit_test(adds_to_tunables),
		cmocka_unit_test(wants_huge_pages_that_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
