/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_TIERS_H
#define TOPIARY_SHAPE_TIERS_H

#include "hwxml/extents.h"
#include "shape/tier.h"

/*
 * The tier of each NUMA node of a tree, by the index of its object, and TIER_DRAM for other objects. Bandwidths are the
 * document's memory attributes, the greatest from any cores. Malloc'ed; NULL when memory is short.
 */
unsigned char *tiers_find(const struct tree *t, const struct tree_extent *extents);

#endif
