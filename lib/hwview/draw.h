/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define DRAW_LINES 3

/*
 * A node's exported topology drawn as SVG by hwloc's own lstopo: packages, NUMA nodes, L3 and L2 caches, cores, PUs and
 * devices, the given cores (a list as in hwview/restrict.h, NULL: none) in dark green, and below it the lines of the
 * caption up to the first NULL. The XML must come from a registry that checked it. 0, or -1 with out untouched. The
 * caller frees out.
 */
int draw_svg(const char *xml, size_t len, const char *cores, const char *const caption[static DRAW_LINES],
	     struct buf *out, struct err *e);
