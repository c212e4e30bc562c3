/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/string_map.h"

/* The leaf switches of a topology, its blocks of one size or its rings, and where each of some nodes is. */
struct slurm_parts {
	struct slurm_part {
		char *name;
		unsigned nodes, all;	/* of those of `names`; of its own */
		unsigned *members;	/* of a ring, in its order: their numbers in `names`, or SLURM_PART_NONE */
		size_t nmembers;
	} *list;
	size_t n;
	bool rings;			/* topology/ring: nodes that must be together are neighbours */
	unsigned size;			/* nodes of a block, as BlockSizes has it; 0: leaf switches, rings */
	unsigned *of;			/* by the numbers of `names` */
};
#define SLURM_PART_NONE UINT_MAX	/* in none, or in several */

/*
 * unit: 0 for leaf switches, else nodes that must be in one block: the smallest blocks, or aggregated blocks, that hold
 * so many, as in topology/block; or the rings. 0, 1 if it has none, or -1 if memory is short or a list of nodes is
 * none, with nothing in it. Free it.
 */
int slurm_parts_read(struct slurm_parts *p, const struct string_map *names, const char *topology, unsigned unit);
void slurm_parts_free(struct slurm_parts *p);
