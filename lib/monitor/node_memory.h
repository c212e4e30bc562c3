/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MONITOR_NODE_MEMORY_H
#define TOPIARY_MONITOR_NODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A NUMA node of this machine by the kernel's number for it, as sysfs(5) describes it. For node_agent/monitor_trace.c
 * and node_agent/monitor_metrics.c.
 */

/* What follows `begins` in the first line of the file that has it. False if there is none. */
bool node_memory_line(long node, const char *file, const char *begins, char *line, size_t size);

/* Bytes that are not free (MemUsed), the page cache included; TRACE_ABSENT of a node without memory. */
uint64_t node_memory_used(long node);

#endif
