/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bind/gpu.h"
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
		const char *visible, *all, *cpus, *told;
	} rows[] = {
		{ "0", NULL, "0-3", "0 near" },
		{ "0,1,2", "0,1,2", "0-3", "0 near,1 far,2 far" },
		{ "2,0", NULL, "8", "2 near,0 far" },
		{ "0,1", NULL, "0,8", "0 near,1 near" },
		/* Where the others are hidden a program counts from 0. */
		{ "0,1", "1,2", "8-15", "1 near,2 near" },
		{ "0", "2", "0", "2 far" },
		{ "1", "1,2", "0", "1 far" },
		{ "GPU-2b4a", NULL, "0", "GPU-2b4a" },
		{ "17", NULL, "0", "17" },
		{ "", "0", "0", "" },
	};
	hwloc_topology_t t = load();

	(void) state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
		char told[256];

		assert_int_equal(hwloc_bitmap_list_sscanf(cpus, rows[i].cpus), 0);
		gpu_describe(t, rows[i].visible, rows[i].all, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].told);
		gpu_describe(NULL, rows[i].visible, NULL, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].visible);
		hwloc_bitmap_free(cpus);
	}
	hwloc_topology_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_order_and_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
