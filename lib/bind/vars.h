/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_VARS_H
#define TOPIARY_BIND_VARS_H

#include <stdbool.h>

/* The environment that nic_vars.c and omp.c export to: of a task in Slurm (spank_plugin/task/task.c), or of a test. */
struct bind_vars {
	bool (*has)(void *env, const char *name);			/* is it set, by whomever? */
	void (*set)(void *env, const char *name, const char *value);	/* only if it is not set */
	void *env;
};

#endif
