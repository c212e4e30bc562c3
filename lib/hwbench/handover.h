/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWBENCH_HANDOVER_H
#define TOPIARY_HWBENCH_HANDOVER_H

#include "hwbench/hwbench.h"

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
