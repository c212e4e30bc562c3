/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_OPTIONS_H
#define TOPIARY_SPANK_OPTIONS_H

#include <slurm/spank.h>

#include "bind/request.h"

/*
 * What the user asked for: "" or a value that was checked when it arrived. --topo-fit, --topo-level and --topo-request are checked, too
 * (fit/request.h), but only slurmctld acts on them, which reads them in the job record.
 */
struct options {
	char matrix[4096];	/* --topo-matrix: on the submit side absolute and readable; on the node as it came */
	char capture[4000];	/* --topo-capture: the same, of a file to be written; shorter, for what is named after it */
	struct bind_request bind;	/* --topo-place, --topo-membind, --topo-omp, --topo-hugepages, --topo-nic, --topo-report */
};

extern struct options options;

/* slurm_spank_init: make the options known. 0 or, where the user can see it, -1. */
int options_register(spank_t sp, int argc, char **argv);

#endif
