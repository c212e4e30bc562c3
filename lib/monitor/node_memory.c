/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/node_memory.h"

#include <stdio.h>
#include <string.h>

#include "trace/block.h"

bool node_memory_line(long node, const char *file, const char *begins, char *line, size_t size)
{
	char path[96], *at;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%ld/%s", node, file);
	if (!(f = fopen(path, "re")))
		return false;
	while (!found && fgets(line, size, f))
		if ((found = (at = strstr(line, begins)) != NULL))
			memmove(line, at + strlen(begins), strlen(at + strlen(begins)) + 1);
	fclose(f);
	return found;
}

uint64_t node_memory_used(long node)
{
	char line[256];
	unsigned long long kib;

	return node_memory_line(node, "meminfo", "MemUsed:", line, sizeof(line)) && sscanf(line, "%llu", &kib) == 1 ?
	       kib << 10 : TRACE_ABSENT;
}
