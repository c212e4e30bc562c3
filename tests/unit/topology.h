/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/* Topologies that hwloc makes: machines for tests, and hwloc itself to judge of what ours make of a topology. */

#include <hwloc.h>

#include "base/file.h"
#include "hwview/machine.h"
#include "table.h"

OWNS(hwloc_topology_t, hwloc_topology_destroy)
OWNS(hwloc_bitmap_t, hwloc_bitmap_free)

/* hwloc loads its plugins with the first topology and unloads them with the last, which costs more than a small one. */
__attribute__((constructor)) static void topology_keep_plugins(void)
{
	static hwloc_topology_t kept;

	if (hwloc_topology_init(&kept))
		abort();
}

/* A machine of a description, or this one, as a program loads its own: with hwloc's defaults. */
static inline hwloc_topology_t synthetic_load(const char *description)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t) || (description && hwloc_topology_set_synthetic(t, description)) ||
	    hwloc_topology_load(t))
		fail_msg("hwloc does not know: %s", description ? description : "this machine");
	return t;
}

/* Its export, as the agent writes it. */
static inline struct buf synthetic_xml(const char *description)
{
	hwloc_topology_t t = synthetic_load(description);
	struct buf xml = {0};

	assert_int_equal(machine_export(t, &xml, NULL), 0);
	hwloc_topology_destroy(t);
	return xml;
}

static inline hwloc_bitmap_t bitmap_of(const char *list)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	assert_int_equal(hwloc_bitmap_list_sscanf(set, list), 0);
	return set;
}

/* Into an empty xml. Returns whether it is hwloc 2's: what is of hwloc 1 has another document type or no version. */
static inline bool corpus_read(const char *path, struct buf *xml)
{
	assert_ok(file_read(path, 64 << 20, xml, &err));
	return strstr(xml->data, "hwloc2.dtd") && strstr(xml->data, "<topology version=\"2");
}

static inline hwloc_topology_t topology_begin(void)
{
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	return t;
}

static inline hwloc_topology_t topology_of_xml(const struct buf *xml)
{
	hwloc_topology_t t = topology_begin();

	if (hwloc_topology_set_xmlbuffer(t, xml->data, xml->len + 1) || hwloc_topology_load(t))
		fail_msg("hwloc does not load:\n%.2000s", xml->data);
	return t;
}

static inline hwloc_topology_t topology_of_synthetic(const char *text)
{
	hwloc_topology_t t = topology_begin();

	if (hwloc_topology_set_synthetic(t, text) || hwloc_topology_load(t))
		fail_msg("hwloc does not know: %s", text);
	return t;
}

static inline struct buf topology_export(hwloc_topology_t t)
{
	struct buf xml = {0};
	char *bytes;
	int len;

	assert_int_equal(hwloc_topology_export_xmlbuffer(t, &bytes, &len, 0), 0);
	buf_add(&xml, bytes, len - 1);
	hwloc_free_xmlbuffer(t, bytes);
	return xml;
}

/* The export of a machine whose packages have a model. */
static inline void export_synthetic(const char *description, struct buf *xml)
{
	hwloc_topology_t t = synthetic_load(description);
	hwloc_obj_t package = NULL;

	while ((package = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PACKAGE, package)))
		assert_int_equal(hwloc_obj_add_info(package, "CPUModel", "A model"), 0);
	assert_int_equal(machine_export(t, xml, NULL), 0);
	hwloc_topology_destroy(t);
}
