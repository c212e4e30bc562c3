/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TOLD_H
#define TOPIARY_SPANK_TOLD_H

#include <slurm/spank.h>
#include <stdbool.h>

/*
 * What we put into the environment of tasks, and of nothing else. A step inherits the environment of the step around it, perhaps on
 * another node, and a job that of the job it was submitted from: TOPIARY_TOLD names what was ours there, each with a hash of
 * its value, so that what the user has changed since is the user's.
 */

/* Whether it is there at all. */
bool told_has(spank_t sp, const char *name);

/* Set it, unless it is there. name: without a space or colon. */
void told_set(spank_t sp, const char *name, const char *value);

/* Unset what is still as a step around this one was told. */
void told_drop(spank_t sp);

#endif
