/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_SRUN_SIDE_H
#define TOPIARY_SPANK_SRUN_SIDE_H

#include <getopt.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * slurm_spank_init in srun, before it reads its environment (Slurm, src/srun, init_srun): in the batch script of a job
 * with a rank map, an srun whose options do not change the number or place of tasks, or repeat the job's own values,
 * gets the map's hosts as if the user had set SLURM_HOSTFILE (srun(1)). Any other prints one line that says why it
 * does not follow the map, unless it starts a launcher's daemons. Called by dispatch.c. Always 0.
 */
int srun_follow_map(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_local_user_init in srun: when it starts a launcher or its daemons (launchers.h), print once which of the
 * user's options do not apply to their ranks. Always 0.
 */
int srun_warn_launcher(spank_t sp, int argc, char **argv);

/*
 * srun ends with an error where --nodes is given beside SLURM_HOSTFILE (slurm_opt.c, _validate_arbitrary): in 24.11 and
 * all later releases, not in 22.05.
 */
#define SRUN_REFUSES_NODES (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0))

/*
 * srun_options.c: do srun's own options on this command line leave the number and place of tasks as the job has them?
 * own: the options of this plugin (options_names), which do. 0, or -1 with the option that does not, or that is
 * ambiguous or unknown.
 */
int srun_check_options(int argc, char **argv, const struct option *own, struct err *e);

/* Does this value of --export pass all of srun's environment to the tasks? */
bool srun_exports_all(const char *value);

#endif
