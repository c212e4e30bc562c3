/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_REPORT_H
#define TOPIARY_SPANK_REPORT_H

#include "task.h"

/*
 * --topo-report: what the kernel reports for each task. The tasks of a node write their records side by side into
 * shared memory, and the one that comes last prints all of them, in the order of ranks, to its stderr: no task waits
 * for another.
 */

/*
 * slurm_spank_init_post_opt on the node, after step_open: allocate the shared memory. Called by dispatch.c. Always 0.
 */
int report_open(spank_t sp, int argc, char **argv);

/*
 * Write this task's record, whatever failed before, so that the others are printed, and its line of NODE.tasks
 * (step/task_lines.h). Called by task.c. 0, or -1 with an error.
 */
int report_task(const struct task *t, struct err *e);

#endif
