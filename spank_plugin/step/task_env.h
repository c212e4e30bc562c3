/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TOLD_H
#define TOPIARY_SPANK_TOLD_H

#include <slurm/spank.h>
#include <stdbool.h>

/*
 * Variables that Topiary sets in the environment of tasks. A step inherits the environment of the step around it,
 * perhaps from another node, and a job that of the job it was submitted from: TOPIARY_TASK_ENV lists the variables
 * that Topiary set, each with a hash of its value, so that they can be replaced unless the user has changed them
 * since. For step/, task/ and launch/.
 */

/* Is the variable set, to whatever value? */
bool task_env_has(spank_t sp, const char *name);

/* Set and list it, unless it is set. name: without a space or colon. */
void task_env_set(spank_t sp, const char *name, const char *value);

/* Unset the variables that still have the value of a surrounding step or job, and the list. */
void task_env_drop(spank_t sp);

#endif
