/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_AFFINITY_H
#define TOPIARY_SPANK_AFFINITY_H

#include <hwloc.h>

#include "base/err.h"

/*
 * The CPUs that the kernel lets this process use, by OS index. hwloc's own calls do this only with a topology that says
 * it is this system's. 0 or -1.
 */
int affinity_get(hwloc_bitmap_t out, struct err *e);
int affinity_set(hwloc_const_bitmap_t cpus, struct err *e);

#endif
