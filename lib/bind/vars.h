/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_VARS_H
#define TOPIARY_BIND_VARS_H

#include <stdbool.h>

/* Where variables for a task go; the caller of what exports them decides where that is: Slurm's environment of a task, or a test. */
struct vars {
	bool (*has)(void *env, const char *name);			/* did the user, or anybody, set it? */
	void (*set)(void *env, const char *name, const char *value);	/* only if it has not */
	void *env;
};

#endif
