/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "replay/slurm_parts.h"

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
