/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_INDEXES_H
#define TOPIARY_SHAPE_INDEXES_H

#include "base/buf.h"
#include "hwxml/extents.h"

/*
 * Inserts OS indexes into a synthetic description of the tree where they are not 0, 1, 2, ...: indexes= at the first PU
 * for all PUs of the node in logical order, and at the first NUMA node for all NUMA nodes, those inside an object
 * before its own. As loops where possible (hwloc manual, "Synthetic topologies"): "2*8:1*2" counts 0,8,1,9,... 0, or -1
 * when memory is short.
 */
int indexes_append(const struct tree *t, const struct tree_extent *extents, struct buf *text);

#endif
