/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_SLURM_ASKED_H
#define TOPIARY_CLI_PLACE_SLURM_ASKED_H

#include "base/buf.h"

/*
 * Where the nodes of a job are not what was asked of them by Slurm's own options, which Slurm reports nowhere:
 * --switches whose wait ended, --segment that blocks could not keep, a job in two blocks that fits into one.
 */
struct slurm_asked {
	const char *nodes;	/* the job's */
	unsigned switches;	/* at most; 0: not asked */
	unsigned segment;	/* nodes; 0: not asked */
};

/*
 * topology: what `scontrol show topology` prints. Appends a line for each that was not kept. Says nothing where a node
 * is in several leaf switches or blocks, or in none: then Slurm has several topologies, and which it used is not known.
 */
void slurm_asked_check(const struct slurm_asked *a, const char *topology, struct buf *out);

#endif
