/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_USER_H
#define TOPIARY_SPANK_USER_H

#include <slurm/spank.h>
#include <sys/types.h>

#include "base/err.h"

/* The job's user, as Slurm tells it. */
struct user {
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* of Slurm; the supplementary ones */
	int ngroups;
};

/* 0, or -1 with an error. */
int user_of(spank_t sp, struct user *u, struct err *e);

/* Be that user for good: 0, or -1 when some of root may be left. */
int user_become(const struct user *u, struct err *e);

/* Has Slurm dropped root for good, for this step's user? 0, or -1 with an error. */
int user_check(uid_t uid, gid_t gid, struct err *e);

#endif
