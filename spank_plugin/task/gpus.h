/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_GPUS_H
#define TOPIARY_SPANK_GPUS_H

#include <hwloc.h>
#include <slurm/spank.h>
#include <stddef.h>

#include "base/err.h"

/*
 * The variables in which Slurm has a task's GPUs, of each maker (Slurm's src/plugins/gres/common/gres_common.c), ended
 * by NULL. The first that is set has them all.
 */
extern const char *const gpus_variables[];

/* The value of the first of these; "": none. */
void gpus_visible(spank_t sp, char *out, size_t size);

/* slurm_spank_init_post_opt, called by dispatch.c: remember the step's GPUs, before tasks have their own. Always 0. */
int gpus_open(spank_t sp, int argc, char **argv);

/* This task's GPUs by the node's numbers, as gpu_own. 0, or -1 with an error. */
int gpus_of_task(spank_t sp, hwloc_topology_t node, char *out, size_t size, struct err *e);

#endif
