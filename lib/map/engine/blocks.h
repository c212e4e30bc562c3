/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_BLOCKS_H
#define TOPIARY_MAP_ENGINE_BLOCKS_H

#include "map/engine/solve.h"

/*
 * For launchers that number ranks node after node, as MPICH's and Intel MPI's do within Slurm: each rank stays on its
 * host of the block mapping, and the place of each rank is solved host by host. The cost of pairs on two hosts is then
 * fixed, so the hosts are independent problems. Of out, only ranks, place, cost and block are set. 0, or -1 with out
 * untouched. Free with mapping_free.
 */
int mapping_blocks(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		   struct mapping *out, struct err *e);

#endif
