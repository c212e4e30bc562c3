/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_SLURM_ASKED_H
#define TOPIARY_CLI_PLACE_SLURM_ASKED_H

#include "base/buf.h"
#include "base/string_map.h"

/*
 * What Slurm's own options ask of the network, by what `scontrol -o show topology` prints of the topology of the job's
 * partition: where the nodes of a job are not as was asked, which Slurm reports nowhere (--switches whose wait ended,
 * --segment that blocks could not keep, a job in two blocks that fits into one, options that this topology ignores);
 * and of which nodes a job that waits must have some together.
 */
struct slurm_asked {
	const char *nodes;	/* the job's */
	unsigned switches;	/* at most; 0: not asked */
	unsigned segment;	/* nodes; 0: not asked */
};

/* Appends a line for each. Says nothing of nodes that are in several leaf switches or blocks, or in none. */
void slurm_asked_check(const struct slurm_asked *a, const char *topology, struct buf *out);

/* The leaf switches of a topology, or its blocks of one size, and where each of some nodes is. */
struct slurm_parts {
	struct slurm_part {
		char *name;
		unsigned nodes, all;	/* of those of `names`; of its own */
	} *list;
	size_t n;
	unsigned size;			/* nodes of a block, as BlockSizes has it; 0: leaf switches */
	unsigned *of;			/* by the numbers of `names` */
};
#define SLURM_PART_NONE UINT_MAX	/* in none, or in several */

/*
 * unit: 0 for leaf switches, else nodes that must be in one block: the smallest blocks, or aggregated blocks, that hold
 * so many, as in topology/block. 0, 1 if it has none, or -1 if memory is short or a list of nodes is none. Free it.
 */
int slurm_parts_read(struct slurm_parts *p, const struct string_map *names, const char *topology, unsigned unit);
void slurm_parts_free(struct slurm_parts *p);

#endif
