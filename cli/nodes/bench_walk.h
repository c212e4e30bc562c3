/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_BENCH_WALK_H
#define TOPIARY_CLI_NODES_BENCH_WALK_H

#include <hwloc.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * The experiment of Denoyelle, Goglin and Jeannot, "A Topology-Aware Performance Monitoring Tool for Shared Resource
 * Management in Multicore Systems", section 5: eight threads that walk lists, linked at random so that nothing is
 * prefetched. Half of the threads have lists that fit into the last level cache together, the others lists of 16 times
 * that. Of two packages (L3 caches on a machine of one package) each has half of both kinds, or (packed) all of one
 * kind. steps: of the small lists and of the large ones, in this time after the lists were made. 0, or -1, after which
 * the process is to end. For `topiary bench walk`, once in a process.
 */
int bench_walk(hwloc_topology_t on, bool is_packed, unsigned milliseconds, unsigned long steps[2], struct err *e);

#endif
