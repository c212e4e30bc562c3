/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_SUBMIT_H
#define TOPIARY_SPANK_SUBMIT_H

#include <slurm/spank.h>

#include "options.h"

/* The submit side: srun, sbatch and salloc, running as the user. Called by dispatch.c. */

/* slurm_spank_init: register the options. Always 0. */
int submit_init(spank_t sp, int argc, char **argv);

/*
 * Of --topo-matrix the absolute path of a regular file that the user may read and that is a communication matrix; of
 * --topo-capture that of a file which exists or may be created, in a directory where the user may write. Both are
 * refused outside sbatch. An option that a step inherited from its job was checked when the job was submitted and is
 * accepted as it is, so that a file that has changed since does not fail a step.
 */
options_path_fn submit_resolve_path;

/* slurm_spank_init_post_opt: pass the absolute paths and the number of ranks on with the job. Always 0. */
int submit_options(spank_t sp, int argc, char **argv);

#endif
