/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_MAPPED_H
#define TOPIARY_SPANK_MAPPED_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Steps that follow the job's map: their srun was given the map's hosts (srun_side.h), and each of their tasks gets the cores that
 * the map has for it, as the job's environment tells in TOPIARY_PLACES (map/rankfile.h). The masks are task_mapped's (task.h).
 */

/*
 * Does this step follow the map? What of it srun found in the environment is taken from the tasks': an srun that one of them
 * runs is a step of its own kind.
 */
bool mapped_take(spank_t sp);

/*
 * Read the leaves of one host's tasks from "cn1:0,2-3+5/cn2:1": each(data, task, first, last) for each run of leaves, tasks from
 * 0. The number of its tasks, 0 where the host is not named, or -1 with an error: other text, or each failed.
 */
typedef int mapped_fn(void *data, unsigned task, unsigned first, unsigned last, struct err *e);
int mapped_read(const char *places, const char *host, mapped_fn *each, void *data, struct err *e);

/* As much as the kernel lets one variable have. */
enum { MAPPED_PLACES = 128 << 10 };

/* The masks of all local tasks, as such words have them. 1; 0: the host is not named; -1: the step is not what they are of. */
struct task;
int mapped_fill(struct task *t, const char *places, struct err *e);

#endif
