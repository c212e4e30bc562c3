/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TASK_LINES_H
#define TOPIARY_SPANK_TASK_LINES_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Where the tasks of a recorded step were, for NODE.tasks beside its trace (trace/tasks.h): each task, as the user,
 * leaves its line in memory that they and slurmstepd share, and at the step's end monitor.c's child, as the user,
 * writes them. Nothing of root's reads a line.
 */

/* Before the tasks, for so many of them. Without memory there are no lines. */
void task_lines_open(unsigned tasks);
bool task_lines_are_open(void);

/* The line of a local task, JSON without a newline; one that is too long is left out. */
void task_lines_set(unsigned local, const char *line);

/* Append all, a line each. */
void task_lines_add(struct buf *out);

#endif
