/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_RANK_FILE_H
#define TOPIARY_SPANK_RANK_FILE_H

#include <slurm/spank.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * slurm_spank_task_init, as the user: in the batch step of a job with --topo-matrix let `topiary map` make the rank files and
 * tell the launchers of them: Open MPI (mpirun(1), "Rankfiles"), unless the user named one, srun (srun_side.h), and MPICH's and
 * Intel MPI's mpiexec, which has a map of its own (proxies.c). Always 0: without them the job runs as it would.
 */
int rank_file_make(spank_t sp, int argc, char **argv);

/* In the batch step: what the environment still has from the job that this one was submitted from goes. */
void rank_file_drop(spank_t sp);

/*
 * rank_file_told.c: hand on what `topiary map` wrote for --env; 0, or -1 with what is amiss. The same of its map with --block. And
 * what its --explain says.
 */
int rank_file_tell_env(spank_t sp, const char *file, struct err *e);
int rank_file_tell_blocks(spank_t sp, const char *file, struct err *e);
void rank_file_tell_cost(spank_t sp, const char *explain);

/* What was told is a map of one host. */
bool rank_file_is_of_one(spank_t sp);

#endif
