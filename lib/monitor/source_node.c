/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/source.h"
#include "monitor/sysfs.h"

/*
 * Memory in use by NUMA node, and what the node's disks transfer: sysfs(5), Documentation/block/stat.rst of the kernel.
 * Network file systems are in the network's counters.
 */
#define SECTOR 512u
#define DISK_MOST 64e9		/* bytes a second */

static void memory_add(void *user, const char *name)
{
	struct source_meter m = { .name = "memory_used", .unit = "B", .kind = TRACE_GAUGE, .level = "NUMANode",
				  .begins = "MemUsed:", .scale = 1024 };
	char path[SYSFS_PATH], text[SYSFS_TEXT], *end;
	struct sources *s = user;
	const char *total;

	m.os_index = strtol(name + strlen("node"), &end, 10);
	if (*end || end == name + strlen("node") ||
	    !sysfs_path(path, s->root, "/sys/devices/system/node/%s/meminfo", name) ||
	    !sysfs_text(path, text, sizeof(text)))
		return;
	/* A NUMA node without memory, and one of which others use a part. */
	if (!(total = strstr(text, "MemTotal:")) ||
	    !(m.bounds.most = strtoull(total + strlen("MemTotal:"), NULL, 10) * m.scale) ||
	    !source_owns_object(s, m.level, m.os_index))
		return;
	source_add_file(s, m, path);
}

int source_memory(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (sysfs_path(path, s->root, "/sys/devices/system/node"))
		sysfs_each(path, "node", memory_add, s);
	return s->nmeters > before ? 0 : err_set(e, s->pus ? "no NUMA node is wholly the job's" : "no NUMA node");
}

/* Disks that are hardware: what is made of them is counted in them. */
static void disk_add(void *user, const char *name)
{
	static const struct { const char *name; unsigned field; } directions[] = {
		{ "disk_read", 2 }, { "disk_written", 6 },
	};
	char path[SYSFS_PATH], device[SYSFS_PATH];
	struct sources *s = user;

	if (!sysfs_path(device, s->root, "/sys/block/%s/device", name) || access(device, F_OK) ||
	    !sysfs_path(path, s->root, "/sys/block/%s/stat", name))
		return;
	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++)
		source_add_file(s, (struct source_meter){ .name = directions[i].name, .unit = "B", .level = "Machine",
							  .os_index = -1, .field = directions[i].field, .scale = SECTOR,
							  .bounds = { .most = DISK_MOST } }, path);
}

int source_disks(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (!source_owns_object(s, "Machine", 0))
		return err_set(e, "the job has only a part of the node");
	if (sysfs_path(path, s->root, "/sys/block"))
		sysfs_each(path, "", disk_add, s);
	return s->nmeters > before ? 0 : err_set(e, "no disks");
}
