/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

int user_of(spank_t sp, struct user *u, struct err *e)
{
	if (spank_get_item(sp, S_JOB_UID, &u->uid) || spank_get_item(sp, S_JOB_GID, &u->gid) ||
	    spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &u->groups, &u->ngroups))
		return err_set(e, "Slurm does not say who the job's user is");
	return 0;
}

int user_check(uid_t uid, gid_t gid, struct err *e)
{
	uid_t r, f, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &f, &s) || getresgid(&rg, &eg, &sg))
		return err_set(e, "%s", strerror(errno));
	if (r != uid || f != uid || s != uid || rg != gid || eg != gid || sg != gid)
		return err_set(e, "this process does not run as the job's user");
	return 0;
}

int user_become(const struct user *u, struct err *e)
{
	if (!geteuid() && (setgroups(u->ngroups, u->groups) || setresgid(u->gid, u->gid, u->gid) || setresuid(u->uid, u->uid, u->uid)))
		return err_set(e, "the job's user: %s", strerror(errno));
	return user_check(u->uid, u->gid, e);
}
