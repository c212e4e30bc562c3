/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_CELLS_H
#define TOPIARY_SHAPE_CELLS_H

#include "base/buf.h"
#include "hwxml/extents.h"

/*
 * A tree as memory and cores alone: " NUMANode:2 Core:16 PU:2" appended to out. NUMA nodes with the same cores are one
 * here, and of several around a core the innermost counts. Where a core has no memory, or memory's cores are cut in two
 * by those of other memory, only cores and PUs are told. 0, or -1 when memory is short.
 */
int cells_append(const struct tree *t, const struct tree_extent *extents, struct buf *out);

#endif
