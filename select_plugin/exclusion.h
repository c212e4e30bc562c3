/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_EXCLUSION_H
#define TOPIARY_SELECT_EXCLUSION_H

#include "slurm_glue.h"

/*
 * The cores that a call of select_p_job_test must not use: those that Slurm passes for reservations, and those that
 * Topiary adds to steer the choice. Until 23.02 one bitmap of all cores of the cluster, since then one for each node.
 * Sets of cores are as in score/score.h; call occupancy_sync first.
 */

/* Clears in cores[] of a node what is excluded there. */
void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores);

/* A copy of the exclusion passed by Slurm, to add to. Free with exclusion_free. */
slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came);
void exclusion_free(slurm_exclusion_t *x);
void exclusion_clear(void);	/* frees what is kept between decisions */

/* Excludes all cores of a node except those in keep[]. */
void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep);

#endif
