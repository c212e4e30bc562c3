/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_SUBMIT_H
#define TOPIARY_SPANK_SUBMIT_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The submit side: srun, sbatch and salloc, as the user. */

/* --topo-matrix: the absolute path of a regular file that the user may read. 0, or -1 with an error that names it. */
int submit_matrix(const char *value, char *out, size_t size, struct err *e);

/* --topo-capture: the absolute path of a file that there is or may be, in a folder where the user may write. The same. */
int submit_capture(const char *value, char *out, size_t size, struct err *e);

/* Does srun have it from the job that it runs in? It was looked at when that was submitted: what became of the file refuses no step. */
bool submit_handed_on(const char *option, const char *value);

/* slurm_spank_init_post_opt: let the job carry the absolute paths. Always 0. */
int submit_options(spank_t sp, int argc, char **argv);

#endif
