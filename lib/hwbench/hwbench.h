/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "shape/level.h"

/*
 * What a node's hardware takes, as `topiary bench node` measures it, writes it and reads it, and as the
 * registry stores it. A value that could not be measured is NAN: memory could not be allocated on that NUMA node.
 */
#define HWBENCH_NUMAS 64u		/* NUMA nodes of a result that is read, at most */
#define HWBENCH_JSON_MAX (1u << 20)	/* bytes of its text */

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
	double *between;		/* seconds, one way between two own cores; NAN: a NUMA node has none */
	struct hwbench_domain *domains;	/* the first of each level that several cores are in */
	unsigned ndomains;
	struct hwbench_handover handovers[LEVEL_COUNT];
};

/* 0, or -1 with an error; free in either case. All values are NAN, there are no domains and no handovers. */
int hwbench_init(struct hwbench *b, unsigned cores, unsigned numas, struct err *e);
void hwbench_free(struct hwbench *b);

/*
 * As JSON: {"cores", "numa_nodes", "cache_line": [{"level", "pairs", "seconds"}], "numa_cache_line": [{"from",
 * "to", "seconds"}], "memory": [{"from", "to", "latency_seconds", "bytes_per_second"}], "domains": [{"level",
 * "cores", "used", "bytes_per_second"}], "costs"}. NULL: no memory. Read from an untrusted source, all but costs,
 * which follow from the others: 0, or -1 with an error about the member; free in either case.
 */
json_t *hwbench_to_json(const struct hwbench *b);
int hwbench_from_json(struct hwbench *b, const json_t *j, struct err *e);

/*
 * Each value that was measured with its name, in a fixed order: "memory bandwidth, NUMA node 0 to 3". Equal shapes have
 * equal names. Those with HWBENCH_RATE in front are bytes a second, where less is worse; the others are seconds. Stops
 * when each returns other than 0, and returns that.
 */
#define HWBENCH_RATE "memory bandwidth"
int hwbench_each(const struct hwbench *b, int (*each)(void *user, const char *name, double value), void *user);

/* What costs follow from, of such values: of NUMA nodes with own cores. 0, or -1 with an error; free in either case. */
int hwbench_of_values(struct hwbench *b, const char *const *names, const double *values, size_t n, struct err *e);

/*
 * The costs of a unit of traffic between cores, as `topiary map --costs` reads them, by level and between NUMA nodes.
 * The nearest cores that were measured cost what they cost by default (level_default_cost), others in proportion to the
 * time that a cache line takes; cores farther away cost no less, and no more than those of another node. What was not
 * measured keeps its default.
 */
void hwbench_costs(const struct hwbench *b, struct buf *out);

/*
 * Measures what a node's hardware takes, on the cores and memory that this process may use: latency and bandwidth of
 * memory between NUMA nodes, bandwidth by number of cores in a domain, and the time in which cores pass a cache line to
 * each other. For `topiary bench node`. Other load makes the results worse.
 *
 * Latency: loads that depend on each other, over cache lines in random order. Bandwidth: 64-bit reads in order, each
 * core in memory of its own. Buffers exceed the caches as far as memory allows.
 *
 * Measures each value for so many seconds. progress is called after each, with the number of all. 0, or -1 with an
 * error; free in either case.
 */
int hwbench_run(struct hwbench *b, hwloc_topology_t t, double seconds,
		void (*progress)(void *user, unsigned done, unsigned all), void *user, struct err *e);
