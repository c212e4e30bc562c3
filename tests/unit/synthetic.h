/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TESTS_SYNTHETIC_H
#define TOPIARY_TESTS_SYNTHETIC_H

#include <hwloc.h>

#include "base/buf.h"
#include "table.h"
#include "hwview/machine.h"

/* The export of a machine that hwloc makes of a description. */
static inline void export_synthetic(const char *description, struct buf *xml)
{
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_synthetic(t, description), 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	for (int i = 0; i < hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE); i++)
		assert_int_equal(
			hwloc_obj_add_info(hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, i), "CPUModel", "A model"), 0);
	assert_int_equal(machine_export(t, xml, NULL), 0);
	hwloc_topology_destroy(t);
}

#endif
