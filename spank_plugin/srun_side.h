/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_SRUN_SIDE_H
#define TOPIARY_SPANK_SRUN_SIDE_H

#include <slurm/spank.h>
#include <stdbool.h>

/*
 * slurm_spank_init in srun, before it reads its environment (Slurm, src/srun, init_srun): in the batch script of a job whose
 * ranks are mapped, an srun that says nothing of how many tasks there are and where gets the map's hosts, as the user
 * would give them (srun(1), SLURM_HOSTFILE). Always 0.
 */
int srun_follow_map(spank_t sp, int argc, char **argv);

/* Does srun's own part of this command line leave the number and the place of tasks to Slurm? Any doubt is a no. */
bool srun_is_plain(int argc, char **argv);

/* Does a value of --export let the tasks have all of srun's environment? */
bool srun_exports_all(const char *value);

#endif
