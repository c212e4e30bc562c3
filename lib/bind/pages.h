/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_PAGES_H
#define TOPIARY_BIND_PAGES_H

#include <hwloc.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The memory of a process by NUMA node, as /proc/PID/numa_maps has it (proc(5)), and moving it (migrate_pages(2)). For
 * cli/watch/memory.c. Pages that several processes map count for each.
 */
#define PAGES_NODES 1024u	/* MAX_NUMNODES of the kernel's largest configuration */

struct pages {
	uint64_t kib[PAGES_NODES];	/* by the operating system's number of the NUMA node */
};

/* Add what numa_maps says. Lines that cannot be read are skipped. */
void pages_add(const char *numa_maps, struct pages *sum);

/* Add those of a process. 0, or -1 with an error: it has ended, or is another user's. */
int pages_read(pid_t pid, struct pages *sum, struct err *e);

/*
 * Move the pages of a process that are on others of all NUMA nodes to these, by the operating system's numbers. The
 * memory policy stays: pages that the process touches later are where it says. 0, or -1 with an error: the process is
 * another user's, or these NUMA nodes are not among those that it may use.
 */
int pages_move(pid_t pid, hwloc_const_bitmap_t all, hwloc_const_bitmap_t to, struct err *e);

#endif
