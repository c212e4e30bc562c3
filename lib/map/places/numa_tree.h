/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"

/*
 * The NUMA nodes of a node as a tree of groups, from the costs between each two: average linkage (Sokal and Michener,
 * 1958), whose joins are reduced to a few levels. The mapping follows a tree; costs that are none are fitted by one.
 * Called by places.c.
 */
enum { NUMA_TREE_MAX = 64, NUMA_TREE_LEVELS = 4 };

struct numa_tree {
	unsigned numas, levels;			/* no levels: fewer than two NUMA nodes */
	double cost[NUMA_TREE_LEVELS];		/* of two that are first in different groups here, outermost first */
	unsigned *group;			/* group[level * numas + numa]: its number, that of its first member */
};

/* cost[a * n + b], symmetric. 0, or -1: memory. The caller frees out. */
int numa_tree_make(const double *cost, unsigned n, struct numa_tree *out, struct err *e);
void numa_tree_free(struct numa_tree *t);
