/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_MONITOR_H
#define TOPIARY_SPANK_MONITOR_H

#include <slurm/spank.h>

/*
 * --topo-monitor: slurmstepd leaves what is asked for in the step's directory (monitor/ask.h), and topiary-monitor(8)
 * records it there. After the last task of the step on this node the trace is copied into the job's folder, as the
 * user. Called by dispatch.c. Whatever fails, the step runs and ends as it would, with one line on its stderr. Always
 * 0.
 */

/* slurm_spank_init_post_opt, as root, after step_open. */
int monitor_open(spank_t sp, int argc, char **argv);

/* slurm_spank_task_exit, as root; and slurm_spank_exit, before step_close, of a step whose tasks were killed. */
int monitor_task_exit(spank_t sp, int argc, char **argv);
int monitor_close(spank_t sp, int argc, char **argv);

#endif
