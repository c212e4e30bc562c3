/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/memory.h"
#include "bind/request.h"
#include "table.h"

static const struct {
	const char *name, *value;
	struct bind_request r;
} right[] = {
	{ "topo-place", "off", { .place = PLACE_OFF } },
	{ "topo-place", "compact", { .place = PLACE_COMPACT } },
	{ "topo-place", "compact:l3", { .place = PLACE_COMPACT, .level = "l3" } },
	{ "topo-place", "scatter:NUMANode", { .place = PLACE_SCATTER, .level = "NUMANode" } },
	{ "topo-place", "scatter:package", { .place = PLACE_SCATTER, .level = "package" } },
	{ "topo-place", "mem", { .place = PLACE_MEM } },
	{ "topo-membind", "local", { .memory = MEMORY_LOCAL } },
	{ "topo-membind", "interleave", { .memory = MEMORY_INTERLEAVE } },
	{ "topo-membind", "interleave:task", { .memory = MEMORY_INTERLEAVE } },
	{ "topo-membind", "interleave:job", { .memory = MEMORY_INTERLEAVE, .scope = SCOPE_JOB } },
	{ "topo-membind", "hbm", { .memory = MEMORY_HBM } },
	{ "topo-membind", "hbm,strict", { .memory = MEMORY_HBM, .memory_strict = true } },
	{ "topo-membind", "dram:job", { .memory = MEMORY_DRAM, .scope = SCOPE_JOB } },
	{ "topo-membind", "capacity:task", { .memory = MEMORY_CAPACITY } },
	{ "topo-membind", "bandwidth:job,strict",
	  { .memory = MEMORY_BANDWIDTH, .scope = SCOPE_JOB, .memory_strict = true } },
	{ "topo-membind", "latency", { .memory = MEMORY_LATENCY } },
	{ "topo-membind", "prefer,job", { .mems = MEMS_PREFER } },
	{ "topo-membind", "bind,job", { .mems = MEMS_STRICT } },
	{ "TopoMembind", "bind,job", { .mems = MEMS_STRICT } },
	{ "topo-mems", "off", { .mems = MEMS_OFF } },
	{ "topo-mems", "prefer", { .mems = MEMS_PREFER } },
	{ "topo-mems", "strict", { .mems = MEMS_STRICT } },
	{ "topo-omp", "auto", { .omp = OMP_AUTO } },
	{ "topo-omp", "kmp", { .omp = OMP_KMP } },
	{ "topo-hugepages", "thp", { .huge = HUGE_THP } },
	{ "topo-hugepages", "1G", { .huge = HUGE_1G } },
	{ "topo-nic", "auto", { .nic = NIC_AUTO } },
	{ "topo-nic", "all,strict", { .nic = NIC_ALL, .strict = true } },
	{ "topo-report", NULL, { .report = REPORT_TABLE } },
	{ "topo-report", "", { .report = REPORT_TABLE } },
	{ "topo-report", "json", { .report = REPORT_JSON } },
	{ "topo-reorder", "", { .reorder = REORDER_ON } },
	{ "topo-reorder", "report", { .reorder = REORDER_REPORT } },
	{ "topo-hwloc", "off", { .hwloc = HWLOC_OWN } },
	{ "topo-place", "Compact:L3", { .place = PLACE_COMPACT, .level = "L3" } },
	{ "topo-membind", "Bandwidth:JOB,Strict",
	  { .memory = MEMORY_BANDWIDTH, .scope = SCOPE_JOB, .memory_strict = true } },
	{ "topo-membind", "latency:Task", { .memory = MEMORY_LATENCY } },
	{ "TopoMembind", "Bind,Job", { .mems = MEMS_STRICT } },
	{ "topo-nic", "All,STRICT", { .nic = NIC_ALL, .strict = true } },
	{ "topo-hugepages", "1g", { .huge = HUGE_1G } },
};


TEST(test_right)
{
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		struct bind_request r = {0};

		struct bind_request again = { .place = PLACE_SCATTER, .level = "numa", .strict = true };
		struct buf words = {0};

		assert_int_equal(bind_request_set(&r, right[i].name, right[i].value, &err), 0);
		bind_request_print(&r, &words);
		assert_int_equal(bind_request_read(&again, words.data, &err), 0);
		assert_memory_equal(&again, &r, sizeof(r));
		buf_free(&words);
		assert_memory_equal(&r, &right[i].r, sizeof(r));
	}
}

static void binding_refused(const char *name, const char *value, const char *words)
{
	const struct bind_request before = { .place = PLACE_MEM, .strict = true, .level = "l2" };
	struct bind_request r = before;

	assert_int_equal(bind_request_set(&r, name, value, &err), -1);
	if (!strstr(err.text, words))
		fail_msg("%s=%s: %s", name, value ? value : "", err.text);
	assert_memory_equal(&r, &before, sizeof(r));
}

TEST(test_wrong)
{
	binding_refused("topo-place", "compact:num\xc3\xa4",
			"LEVEL is machine, package, die, numa, l4, l3, l2, l1, core or pu");
	binding_refused("topo-omp", NULL, "--topo-omp=: invalid value, expected one of");
	pairs_each("refused/bindings.txt", binding_refused);
}

/* A user's word replaces a site's, all of it. */
TEST(test_again)
{
	struct bind_request r = {0}, mem = { .place = PLACE_MEM }, scatter = { .place = PLACE_SCATTER };

	assert_int_equal(bind_request_set(&r, "topo-place", "compact:l3", &err), 0);
	assert_int_equal(bind_request_set(&r, "topo-place", "scatter", &err), 0);
	assert_memory_equal(&r, &scatter, sizeof(r));
	assert_int_equal(bind_request_set(&r, "topo-place", "compact:l3", &err), 0);
	assert_int_equal(bind_request_set(&r, "topo-place", "mem", &err), 0);
	assert_int_equal(r.place, mem.place);
	assert_string_equal(r.level, "");
	assert_int_equal(bind_request_set(&r, "topo-membind", "hbm:job,strict", &err), 0);
	assert_int_equal(bind_request_set(&r, "topo-membind", "local", &err), 0);
	assert_int_equal(r.scope, SCOPE_TASK);
	assert_false(r.memory_strict);
	assert_int_equal(bind_request_set(&r, "topo-nic", "all,strict", &err), 0);
	assert_int_equal(bind_request_set(&r, "topo-nic", "off", &err), 0);
	assert_false(r.strict);
}

TEST(pages_by_numa_node)
{
	static const char maps[] =
		"55e127000000 default file=/bin/N1=7 mapped=1 N0=1 kernelpagesize_kB=4\n"
		"55e128000000 bind:1 heap anon=3 dirty=3 N1=2 N10=1 kernelpagesize_kB=4\n"
		"7f0000000000 default file=/dev/hugepages/x huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n"
		"7f1000000000 default\n"
		"7f2000000000 default anon=1 N4000000000=1 N1=x kernelpagesize_kB=4\n"
		"7f3000000000 default anon=1 N1=5";
	struct pages sum = { .kib = { [0] = 100 } };

	pages_add(maps, &sum);
	for (unsigned i = 0; i < PAGES_NODES; i++)
		assert_int_equal(sum.kib[i], i == 0 ? 104 : i == 1 ? 8 + 4096 : i == 10 ? 4 : 0);
}

TESTS_MAIN(NULL, NULL)
