/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWBENCH_HWBENCH_H
#define TOPIARY_HWBENCH_HWBENCH_H

#include <hwloc.h>

#include "hwbench/result.h"

/*
 * Measures what a node's hardware takes, on the cores and memory that this process may use: latency and bandwidth of
 * memory between NUMA nodes, bandwidth by number of cores in a domain, and the time in which cores pass a cache line to
 * each other. For `topiary bench node`. Other load makes the results worse.
 *
 * Latency: loads that depend on each other, over cache lines in random order. Bandwidth: 64-bit reads in order, each
 * core in memory of its own. Buffers exceed the caches as far as memory allows.
 */

/*
 * Measures each value for so many seconds. progress is called after each, with the number of all. 0, or -1 with an
 * error; free in either case.
 */
int hwbench_run(struct hwbench *b, hwloc_topology_t t, double seconds,
		void (*progress)(void *user, unsigned done, unsigned all), void *user, struct err *e);

#endif
