/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_BLOCKS_H
#define TOPIARY_MAP_ENGINE_BLOCKS_H

#include "map/engine/solve.h"

/*
 * For launchers that number ranks node after node, as MPICH's and Intel MPI's do within Slurm: each rank stays on the
 * host where block has it, and which of its host's places it gets is solved host by host. What pairs of two hosts cost
 * is then settled, so that this is the whole of the problem. Of out, only ranks, place, cost and block are set. 0, or
 * -1 with out untouched. Free with mapping_free.
 */
int mapping_blocks(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		   struct mapping *out, struct err *e);

#endif
