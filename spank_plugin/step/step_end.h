/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_STEP_END_H
#define TOPIARY_SPANK_STEP_END_H

#include <slurm/spank.h>
#include <stdbool.h>

#include "monitor/ask.h"

/*
 * What follows a recorded step, once for all of its nodes: the line of `topiary advise --brief` on the job's stderr
 * (,advise of --topo-monitor and TopoMonitor). By then each node has written its files: srun ends after the tasks' exit
 * hooks have run everywhere. For a step of srun it is srun that runs the command, for a batch script a child of
 * slurmstepd that has become the user. The command has a time limit; what fails is one line, and changes nothing for
 * the job.
 */

/* srun: slurm_spank_local_user_init, and slurm_spank_exit. Called by dispatch.c. Always 0. */
int step_end_note(spank_t sp, int argc, char **argv);
int step_end_srun(spank_t sp, int argc, char **argv);

/*
 * name: of the step; folder: its own; is_root: become step.user first; is_asked: the user, not the site, set
 * --topo-monitor. For monitor.c, after the files were written.
 */
void step_end_run(const char *name, const char *folder, const struct monitor_request *r, bool is_root, bool is_asked);

#endif
