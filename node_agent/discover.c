/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "discover.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Whatever cgroup the agent runs in, the node has all of its cores: slurmd counts with the same flag. */
static int topology_load(hwloc_topology_t t)
{
	return hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
		hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(t);
}

int discover_xml(struct buf *out, struct err *e)
{
	hwloc_topology_t t;
	struct buf b = {0};
	char *xml;
	int len;

	if (hwloc_topology_init(&t))
		return err_set(e, "hwloc: %s", strerror(errno));
	if (topology_load(t) || hwloc_topology_export_xmlbuffer(t, &xml, &len, 0)) {
		err_set(e, "hwloc cannot discover this machine: %s", strerror(errno));
		hwloc_topology_destroy(t);
		return -1;
	}
	buf_add(&b, xml, len - 1);	/* hwloc counts the NUL */
	hwloc_free_xmlbuffer(t, xml);
	hwloc_topology_destroy(t);
	if (b.failed)
		return err_set(e, "out of memory");
	*out = b;
	return 0;
}

int discover_boot(char boot_id[static 37], struct err *e)
{
	FILE *f = fopen(BOOT_ID, "re");
	int n = f ? fscanf(f, "%36s", boot_id) : 0;

	if (f)
		fclose(f);
	return n == 1 && strlen(boot_id) == 36 ? 0 : err_set(e, "%s: not a boot ID", BOOT_ID);
}
