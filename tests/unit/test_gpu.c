/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "bind/gpu.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "table.h"

/*
 * Two packages of 8 cores, 0-7,16-23 and 8-15,24-31; a GPU at the first, two at the second, beside another maker's and
 * the display of a management controller, which comes second on the bus.
 */
#define MACHINE "machines/intel-2x8.xml"

static hwloc_topology_t load(void)
{
	const char *cache = getenv("TOPIARY_CACHE");
	hwloc_topology_t t;
	char path[4096];

	snprintf(path, sizeof(path), "%s/" MACHINE, cache ? cache : ".cache");
	if (access(path, R_OK)) {
		print_message("no %s: packaging/setup brings it\n", path);
		skip();
	}
	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT), 0);
	assert_int_equal(hwloc_topology_set_xml(t, path), 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	return t;
}

static void tells_order_and_side(void **state)
{
	static const struct {
		const char *gpus, *cpus, *told;
	} rows[] = {
		{ "0", "0-3", "0 near" },
		{ "0,1,2", "0-3", "0 near,1 far,2 far" },
		{ "2,0", "8", "2 near,0 far" },
		{ "0,1", "0,8", "0 near 1 of 2 cores,1 near 1 of 2 cores" },
		{ "0,1,2", "0-7,8-9", "0 near 8 of 10 cores,1 near 2 of 10 cores,2 near 2 of 10 cores" },
		{ "GPU-2b4a", "0", "GPU-2b4a" },
		{ "17", "0", "17" },
		{ "", "0", "" },
	};
	hwloc_topology_t t = load();

	(void) state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
		char told[256];

		assert_int_equal(hwloc_bitmap_list_sscanf(cpus, rows[i].cpus), 0);
		gpu_describe(t, rows[i].gpus, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].told);
		gpu_describe(NULL, rows[i].gpus, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].gpus);
		hwloc_bitmap_free(cpus);
	}
	hwloc_topology_destroy(t);
}

/* --- numbers and UUIDs --- */

#define DRIVEN "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%u0:00.0\" pci_type=\"0302 [10de:20b0] " \
	"[10de:144e] a1\" pci_link_speed=\"31.5\"><object type=\"OSDev\" gp_index=\"%u\" name=\"nvml%u\" " \
	"osdev_type=\"1\"><info name=\"NVIDIAUUID\" value=\"%s\"/></object></object>\n"

/* A GPU at each NUMA node, the one that is first on the bus at NUMA node `at`; the driver numbers them otherwise. */
static hwloc_topology_t numbered(unsigned at)
{
	static const char *const uuids[] = { "GPU-bbbb", "GPU-aaaa" };
	struct buf out = {0}, xml = {0};
	struct err e = {""};
	hwloc_topology_t t;
	const char *from, *to;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_false(hwloc_topology_set_synthetic(t, "Package:2 [numa] Core:2 PU:1") || hwloc_topology_load(t));
	assert_int_equal(machine_export(t, &out, NULL), 0);
	hwloc_topology_destroy(t);
	from = out.data;
	for (unsigned node = 0; node < 2; node++) {
		to = strstr(from + 1, "<object type=\"NUMANode\"");
		buf_add(&xml, from, to - from);
		from = to;
		for (unsigned i = 0; i < 2; i++)
			if (node == (i ? 1 : at))
				buf_printf(&xml, DRIVEN, 900 + i, 1 + i, 910 + i, 1 - i, uuids[i]);
		/* One that the driver has lost. */
		if (node)
			buf_puts(&xml, "<object type=\"PCIDev\" gp_index=\"920\" pci_busid=\"0000:50:00.0\" pci_type="
				 "\"0302 [10de:20b0] [10de:144e] ff\" pci_link_speed=\"0\"/>\n");
	}
	buf_puts(&xml, from);
	if (!(t = image_load(xml.data, xml.len, true, &e)))
		fail_msg("%s", e.text);
	buf_free(&out);
	buf_free(&xml);
	return t;
}

static void finds_numbers_and_uuids(void **state)
{
	static const struct {
		unsigned at;
		const char *id, *want;
	} rows[] = {
		{ 0, "0", "2-3" },
		{ 0, "1", "0-1" },
		{ 0, "2", "GPU 2 is not in the node's topology" },
		{ 0, "GPU-aaaa", "2-3" },
		{ 0, "GPU-bbbb", "0-1" },
		{ 0, "GPU-aaa", "GPU GPU-aaa is not in the node's topology" },
		{ 0, "MIG-GPU-bbbb/3/0", "0-1" },
		{ 0, "MIG-5c1e", "the node's topology does not say where MIG-5c1e is" },
		{ 1, "MIG-5c1e", "2-3" },
		{ 1, "MIG-GPU-bbbb/3/0", "2-3" },
	};

	(void) state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_topology_t t = numbered(rows[i].at);
		hwloc_bitmap_t near = hwloc_bitmap_alloc();
		struct err e;
		char got[sizeof(e.text)];

		if (!gpu_localities(t, rows[i].id, &near, &e))
			hwloc_bitmap_list_snprintf(got, sizeof(got), near);
		else
			snprintf(got, sizeof(got), "%s", e.text);
		assert_string_equal(got, rows[i].want);
		hwloc_bitmap_free(near);
		hwloc_topology_destroy(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_order_and_side),
		cmocka_unit_test(finds_numbers_and_uuids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
