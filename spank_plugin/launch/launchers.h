/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_LAUNCHERS_H
#define TOPIARY_SPANK_LAUNCHERS_H

#include <slurm/spank.h>

/*
 * MPI launchers (mpirun, mpiexec), and the daemons that start their ranks on each node by srun. All ranks inherit the
 * environment and the memory policy of such a task, so it gets nothing that is meant for one task: no binding, memory
 * policy, OpenMP variables, network device or report; srun prints a warning (srun_side.h). The plugin never sees their
 * ranks.
 *
 * mpiexec of MPICH (Hydra) and of Intel MPI numbers ranks node after node, as many on each as Slurm has tasks there.
 * In a job with a rank map its proxy gets environment variables with the CPUs of the ranks on its node (from
 * TOPIARY_BLOCK_PLACES of `topiary map --block`), unless the user chose a binding or hosts.
 */

/*
 * dispatch.c, before step_open: set step.launcher and step.follows_map. Of a step whose srun got the map's hosts the
 * variables that say so are removed from the tasks' environment: an srun that a task runs is not part of the map.
 * Always 0.
 */
int launchers_detect(spank_t sp, int argc, char **argv);

/* The name of the launcher or daemon that a path names, or NULL. For srun_side.c. */
const char *launchers_program(const char *path);

/* slurm_spank_task_init, as the user: export the map to a proxy. What fails is logged. Always 0. */
int launchers_prepare(spank_t sp, int argc, char **argv);

#endif
