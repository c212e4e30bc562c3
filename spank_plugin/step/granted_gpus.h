/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_GRANTED_GPUS_H
#define TOPIARY_SPANK_GRANTED_GPUS_H

#include <slurm/spank.h>
#include <stddef.h>

/*
 * In slurmstepd, as root, before the tasks: the GPUs that Slurm has granted the step on this node, by its numbers
 * ("0,2"), "" if there are none or it is not certain whose they are. The environment is the user's, but Slurm has
 * replaced or removed its own variables in it before plugins are called (gres_g_step_set_env, Slurm,
 * src/slurmd/slurmstepd/slurmstepd.c), if its plugin gres/gpu is loaded; what a user wrote there is not believed
 * otherwise. For monitor.c.
 */
void granted_gpus(spank_t sp, char *out, size_t size);

#endif
