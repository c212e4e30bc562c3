/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_USER_H
#define TOPIARY_SPANK_USER_H

#include <sys/types.h>

#include "base/err.h"

/* A job's user. */
struct user {
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* of Slurm; the supplementary ones */
	int ngroups;
};

/*
 * For a child, before it looks at anything: be that user for good, out of the reach of the user's other processes, and with no way
 * for it, or for what it executes, to become more. 0, or -1 when some of root may be left.
 */
int user_become(const struct user *u, struct err *e);

/* Has root been dropped for good, for that user? 0, or -1 with an error. */
int user_check(const struct user *u, struct err *e);

#endif
