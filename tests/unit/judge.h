/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TESTS_JUDGE_H
#define TOPIARY_TESTS_JUDGE_H

/* hwloc itself, to judge of what ours make of a topology. */

#include <hwloc.h>

#include "base/buf.h"
#include "table.h"

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

#endif
