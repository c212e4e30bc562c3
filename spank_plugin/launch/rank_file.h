/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_RANK_FILE_H
#define TOPIARY_SPANK_RANK_FILE_H

#include <slurm/spank.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * slurm_spank_task_init, as the user: in the batch step of a job with --topo-matrix run `topiary map` and export its
 * rank files to the launchers: Open MPI 4, unless the user chose a mapping, srun (srun_side.h), and mpiexec of MPICH
 * and Intel MPI, which has a map of its own (launchers.h). Called by dispatch.c. Always 0: without them the job runs
 * as it would, and its stderr has one line.
 */
int rank_file_make(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_init_post_opt, in the batch step: unset what the environment has from the job that this one was
 * submitted from. Always 0.
 */
int rank_file_unset_env(spank_t sp, int argc, char **argv);

/*
 * rank_file_env.c, for rank_file.c: export to the job the variables that `topiary map --env` wrote to a file; the same
 * of its map made with --block; and the costs in its --explain=json. 0, or -1 with an error.
 */
int rank_file_export_env(spank_t sp, const char *file, struct err *e);
int rank_file_export_blocks(spank_t sp, const char *file, struct err *e);
void rank_file_export_cost(spank_t sp, const char *explain);

/* Has the exported map a single host? */
bool rank_file_is_one_host(spank_t sp);

#endif
