/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <getopt.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "base/err.h"

/* What a job's launch needs: the submit side, srun, rank files, MPI launchers. Called by dispatch.c. */

/* --- submit.c --- */

/* The submit side: srun, sbatch and salloc, running as the user. */

/* slurm_spank_init: register the options. Always 0. */
int submit_init(spank_t sp, int argc, char **argv);

/* slurm_spank_init_post_opt: pass the absolute paths and the number of ranks on with the job. Always 0. */
int submit_options(spank_t sp, int argc, char **argv);

/* --- srun_side.c --- */

/*
 * slurm_spank_init in srun, before it reads its environment (Slurm, src/srun, init_srun): in the batch script of a job
 * with a rank map, an srun whose options do not change the number or place of tasks, or repeat the job's own values,
 * gets the map's hosts as if the user had set SLURM_HOSTFILE (srun(1)). Any other prints one line that says why it
 * does not follow the map, unless it starts a launcher's daemons. Always 0.
 */
int srun_follow_map(spank_t sp, int argc, char **argv);

/*
 * In a job with --topo-matrix=auto srun_follow_map runs `topiary map --learned` for the program on the command line:
 * the ranks follow its map if that gains, and are no longer recorded once nothing is learned from it. This says which,
 * when the step is there (slurm_spank_local_user_init): with -v alone, if the ranks stay where they are. Always 0.
 */
int srun_report_learned(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_local_user_init in srun: when it starts the daemons of a launcher, print once which of the user's options
 * do not apply to their ranks. Always 0.
 */
int srun_warn_launcher(spank_t sp, int argc, char **argv);

/*
 * srun ends with an error where --nodes is given beside SLURM_HOSTFILE (slurm_opt.c, _validate_arbitrary): in 24.11 and
 * all later releases, not in 22.05.
 */
#define SRUN_REFUSES_NODES (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0))

/*
 * srun_options.c: do srun's own options on this command line leave the number and place of tasks as the job has them?
 * own: the options of this plugin (options_names), which do. 0 and the index of the command, or -1 with the option that
 * does not, or that is ambiguous or unknown.
 */
int srun_check_options(int argc, char **argv, const struct option *own, int *command, struct err *e);

/* Does this value of --export pass all of srun's environment to the tasks? */
bool srun_exports_all(const char *value);

/* --- rank_file.c --- */

/*
 * slurm_spank_task_init, as the user: in the batch step of a job with --topo-matrix run `topiary map` and export its
 * rank files to the launchers: Open MPI 4, unless the user chose a mapping, srun (srun_follow_map), and mpiexec of
 * MPICH and Intel MPI, which has a map of its own (launchers_prepare). Always 0: without them the job runs as it would,
 * and its stderr has one line.
 */
int rank_file_make(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_init_post_opt, in the batch step: unset what the environment has from the job that this one was
 * submitted from. Always 0.
 */
int rank_file_unset_env(spank_t sp, int argc, char **argv);

/* --- launchers.c --- */

/*
 * MPI launchers (mpirun, mpiexec), and the daemons that start their ranks on each node by srun. All ranks inherit the
 * environment and the memory policy of such a task, so it gets nothing that is meant for one task: no binding, memory
 * policy, OpenMP variables, network device or report; srun prints a warning (srun_warn_launcher). The plugin never sees
 * their ranks.
 *
 * mpiexec of MPICH (Hydra) and of Intel MPI numbers ranks node after node, as many on each as Slurm has tasks there.
 * In a job with a rank map its proxy gets environment variables with the CPUs of the ranks on its node (from
 * TOPIARY_BLOCK_PLACES of `topiary map --block`), unless the user chose a binding or hosts.
 */

/*
 * Before step_open: set step.launcher and step.follows_map. Of a step whose srun got the map's hosts the variables that
 * say so are removed from the tasks' environment: an srun that a task runs is not part of the map. Always 0.
 */
int launchers_detect(spank_t sp, int argc, char **argv);

/* Does a path name a launcher or a daemon of one? And the daemon's name, or NULL. For srun_side.c. */
bool launchers_known(const char *path);
const char *launchers_daemon(const char *path);

/*
 * slurm_spank_task_init, as the user: where the user has Topiary place tasks, and no map does, let Open MPI and Intel
 * MPI start each rank by `topiary bind --job`, in the batch script, an interactive step or a launcher that srun starts.
 * MPICH has no variable for a command before its ranks. What the user has set stays. Always 0.
 */
int launchers_prefix_ranks(spank_t sp, int argc, char **argv);

/* In srun: are the ranks of that daemon placed so? */
bool launchers_place(const char *daemon);

/* slurm_spank_task_init, as the user: export the map to a proxy. What fails is logged. Always 0. */
int launchers_prepare(spank_t sp, int argc, char **argv);
