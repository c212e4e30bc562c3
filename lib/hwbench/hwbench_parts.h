/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWBENCH_HWBENCH_PARTS_H
#define TOPIARY_HWBENCH_HWBENCH_PARTS_H

#include <hwloc.h>
#include <stdint.h>

#include "base/err.h"
#include "hwbench/hwbench.h"

/* Threads, each on a core of its own, that do the same thing at the same time. */

struct team_member {
	hwloc_obj_t core;		/* its first PU is used */
	void *memory;			/* the member's own */
	size_t bytes;
	double rate;			/* set: of bytes, or whatever the work counts, a second */
};

/* One round of work; returns what it counts. */
typedef uint64_t team_work_t(const struct team_member *m);

/*
 * All members repeat the work for at least so many seconds: as long as one of them has not begun or not finished its
 * time, all others go on, so that the rates are those beside each other. 0, or -1 with an error.
 */
int team_run(hwloc_topology_t t, struct team_member *members, unsigned n, team_work_t *work, double seconds,
	     struct err *e);

/* Binds the calling thread to the first PU of a core. 0, or -1. */
int team_bind(hwloc_topology_t t, hwloc_obj_t core);

/* The first NUMA node that a core is local to, or NULL. */
hwloc_obj_t team_numa(hwloc_topology_t t, hwloc_obj_t core);

/*
 * Measures how long two cores take to pass a cache line to each other, one way, for pairs that are first in different
 * domains of the level, from the node inwards. Of at most HANDOVER_PAIRS pairs, which share the time. 0, or -1 with an
 * error.
 */
#define HANDOVER_PAIRS 5u

int handover_measure(hwloc_topology_t t, enum level level, double seconds, struct hwbench_handover *out,
		     struct err *e);

/* The same of one pair. */
int handover_pair(hwloc_topology_t t, hwloc_obj_t from, hwloc_obj_t to, double seconds, double *out, struct err *e);

#endif
