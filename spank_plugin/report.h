/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_REPORT_H
#define TOPIARY_SPANK_REPORT_H

#include "task.h"

/*
 * --topo-report: what the kernel says each task has. A node's tasks write theirs side by side into memory that they share,
 * and the one that comes last puts all of it, in the order of ranks, onto its stderr: no task waits for another.
 */

/* slurm_spank_init_post_opt on the node, after step_open: the memory. Always 0. */
int report_open(spank_t sp, int argc, char **argv);

/* What this task has; whatever failed before, so that the others' is told. 0 or -1. */
int report_task(const struct task *t, struct err *e);

#endif
