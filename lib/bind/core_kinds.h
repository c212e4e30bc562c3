/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_CORE_KINDS_H
#define TOPIARY_BIND_CORE_KINDS_H

#include <hwloc.h>

#include "shape/core_kind.h"

/*
 * The PUs of each kind of core in a topology (shape/core_kind.h), the most performant first, for place.c. Returns the
 * number of kinds with the sets, which the caller frees; 0, without sets, if all are of one kind or memory is short.
 */
unsigned bind_core_kinds(hwloc_topology_t t, hwloc_bitmap_t sets[static CORE_KINDS_MAX]);

#endif
