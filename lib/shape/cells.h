/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_CELLS_H
#define TOPIARY_SHAPE_CELLS_H

#include "base/buf.h"
#include "hwxml/extents.h"

/*
 * Appends a tree reduced to memory and cores to out: " NUMANode:2 Core:16 PU:2". NUMA nodes with the same cores count
 * as one, and of several around a core the innermost counts. If a core has no memory, or the cores of a memory are not
 * contiguous, only cores and PUs are written. 0, or -1 when memory is short.
 */
int cells_append(const struct tree *t, const struct tree_extent *extents, struct buf *out);

#endif
