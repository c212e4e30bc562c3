/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

enum { MAPS_MAX = 64 << 20, WORD_BITS = 8 * sizeof(unsigned long), WORDS = PAGES_NODES / WORD_BITS };

/* One mapping: "... N0=12 N3=4 kernelpagesize_kB=4". */
static void line_add(const char *line, size_t len, struct pages *sum)
{
	static const char size_key[] = "kernelpagesize_kB=";
	const char *end = line + len, *size = memmem(line, len, size_key, sizeof(size_key) - 1);
	uint64_t each = size ? strtoul(size + sizeof(size_key) - 1, NULL, 10) : 0;

	for (const char *at = line; each && (at = memmem(at, end - at, " N", 2)); at += 2) {
		unsigned node;
		uint64_t pages;

		if (sscanf(at, " N%u=%lu", &node, &pages) == 2 && node < PAGES_NODES)
			sum->kib[node] += pages * each;
	}
}

void pages_add(const char *numa_maps, struct pages *sum)
{
	for (size_t len; *numa_maps; numa_maps += len + (numa_maps[len] == '\n')) {
		len = strcspn(numa_maps, "\n");
		line_add(numa_maps, len, sum);
	}
}

int pages_read(pid_t pid, struct pages *sum, struct err *e)
{
	struct buf maps = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int) pid);
	if (file_read(path, MAPS_MAX, &maps, e))
		return -1;
	pages_add(maps.data, sum);
	buf_free(&maps);
	return 0;
}

int pages_move(pid_t pid, hwloc_const_bitmap_t all, hwloc_const_bitmap_t to, struct err *e)
{
	unsigned long from[WORDS], target[WORDS];

	for (unsigned i = 0; i < WORDS; i++) {
		target[i] = hwloc_bitmap_to_ith_ulong(to, i);
		from[i] = hwloc_bitmap_to_ith_ulong(all, i) & ~target[i];
	}
	/* Its maxnode counts from 1: bits up to maxnode - 1 are read. */
	if (syscall(SYS_migrate_pages, pid, PAGES_NODES + 1, from, target) < 0)
		return err_set(e, "process %d: migrate_pages: %s", (int) pid,
			       errno == EPERM ? "not your process, or NUMA nodes that it may not use" :
			       errno == EINVAL ? "NUMA nodes that this node does not have, or may not be used" :
			       strerror(errno));
	return 0;
}
