/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "discover.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hwview/machine.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Whatever cgroup the agent runs in, all cores of the node count: slurmd uses the same flag. */
static int topology_load(hwloc_topology_t t)
{
	return hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
		hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(t);
}

int discover_xml(const char *format, struct buf *out, struct err *e)
{
	hwloc_topology_t t;
	int rc;

	if (hwloc_topology_init(&t))
		return err_set(e, "hwloc: %s", strerror(errno));
	if (topology_load(t))
		rc = err_set(e, "hwloc cannot discover this machine: %s", strerror(errno));
	else if ((rc = machine_export_as(t, strtoul(format, NULL, 10), out, e)))	/* own: 0 */
		err_within(e, "ExportFormat=%s", format);
	hwloc_topology_destroy(t);
	return rc;
}

int discover_boot(char boot_id[static 37], struct err *e)
{
	FILE *f = fopen(BOOT_ID, "re");
	int n = f ? fscanf(f, "%36s", boot_id) : 0;

	if (f)
		fclose(f);
	return n == 1 && strlen(boot_id) == 36 ? 0 : err_set(e, "%s: not a boot ID", BOOT_ID);
}
