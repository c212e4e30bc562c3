/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_RANK_FILE_H
#define TOPIARY_SPANK_RANK_FILE_H

#include <slurm/spank.h>

/*
 * slurm_spank_task_init, as the user: in the batch step of a job with --topo-matrix let `topiary map` make the rank file and
 * tell Open MPI of it (mpirun(1), "Rankfiles"), unless the user named one. Always 0: without it the job runs as it would.
 */
int rank_file_make(spank_t sp, int argc, char **argv);

#endif
