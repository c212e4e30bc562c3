/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_AFFINITY_H
#define TOPIARY_SPANK_AFFINITY_H

#include <hwloc.h>

#include "base/err.h"

/*
 * The CPUs that this process may run on (sched_setaffinity(2)), by OS index. hwloc's own calls need a topology that is
 * marked as this system's. For step/export.c and task/. 0, or -1 with an error.
 */
int affinity_get(hwloc_bitmap_t out, struct err *e);
int affinity_set(hwloc_const_bitmap_t cpus, struct err *e);

#endif
