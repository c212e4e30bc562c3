/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWBENCH_HWBENCH_H
#define TOPIARY_HWBENCH_HWBENCH_H

#include <hwloc.h>

#include "base/err.h"
#include "shape/level.h"

/*
 * What a node's hardware takes, measured on the cores and memory that this process may use: latency and bandwidth of
 * memory between NUMA nodes, bandwidth by number of cores in a domain, and the time in which cores pass a cache line to
 * each other. For `topiary bench node`. Other load makes the results worse.
 *
 * Latency: loads that depend on each other, over cache lines in random order. Bandwidth: 64-bit reads in order, each
 * core in memory of its own. Buffers exceed the caches as far as memory allows. A value that could not be measured is
 * NAN: memory could not be allocated on that NUMA node.
 */

/* Bandwidth of 1, 2, 4 ... and all cores of a domain, from the NUMA nodes near to it. */
struct hwbench_domain {
	enum level level;		/* LEVEL_PACKAGE, LEVEL_NUMA or LEVEL_L3 */
	unsigned cores;
	unsigned n, *used;		/* numbers of cores */
	double *bandwidth;		/* bytes a second */
};

/* Cores that are first in different domains of this level, from the node inwards; LEVEL_CORE: of one L2. */
struct hwbench_handover {
	enum level level;
	unsigned pairs;			/* measured; 0: there are none */
	double seconds;			/* one way, the median of these pairs */
};

struct hwbench {
	unsigned cores, numas;
	unsigned *os_index;		/* of each NUMA node */
	double *latency;		/* seconds; [from * numas + to] */
	double *bandwidth;		/* bytes a second, all cores of `from` */
	struct hwbench_domain *domains;	/* the first of each level that several cores are in */
	unsigned ndomains;
	struct hwbench_handover handovers[LEVEL_COUNT];
};

/*
 * Measures each value for so many seconds. progress is called after each, with the number of all. 0, or -1 with an
 * error; free in either case.
 */
int hwbench_run(struct hwbench *b, hwloc_topology_t t, double seconds,
		void (*progress)(void *user, unsigned done, unsigned all), void *user, struct err *e);
void hwbench_free(struct hwbench *b);

#endif
