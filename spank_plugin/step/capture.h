/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CAPTURE_H
#define TOPIARY_SPANK_CAPTURE_H

#include <slurm/spank.h>

/*
 * --topo-capture=FILE, in the batch step; called by dispatch.c. Before the script: a directory FILE.JOB for the ranks'
 * records, and the variables by which Open MPI's monitoring (ompi_info --param pml monitoring) or Topiary's recorder
 * (lib/capture) writes there. After it, a process of the job, which was started before the script, runs `topiary
 * matrix` to merge the records into FILE. All of it as the user. Whatever fails, the job ends as it would, with one
 * line on its stderr.
 */

/* slurm_spank_init_post_opt, as root; slurm_spank_task_init, as the user. Always 0. */
int capture_open(spank_t sp, int argc, char **argv);
int capture_begin(spank_t sp, int argc, char **argv);

/* slurm_spank_task_exit, as root: wait for that process, for a few seconds at most. Always 0. */
int capture_end(spank_t sp, int argc, char **argv);

#endif
