/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CAPTURE_H
#define TOPIARY_SPANK_CAPTURE_H

#include <slurm/spank.h>

/*
 * --topo-capture=FILE, in the batch step. Around the script: a folder FILE.JOB for what each rank tells, and the environment by which
 * Open MPI's monitoring (ompi_info --param pml monitoring) or our recorder (lib/capture) writes there; after it `topiary matrix` adds
 * that up into FILE. All of it as the user. Whatever fails, the job ends as it would, with one line on its stderr.
 */

/* slurm_spank_task_init, as the user; slurm_spank_task_exit, as root. Always 0. */
int capture_begin(spank_t sp, int argc, char **argv);
int capture_end(spank_t sp, int argc, char **argv);

#endif
