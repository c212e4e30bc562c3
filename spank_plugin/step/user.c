/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

int user_check(const struct user *u, struct err *e)
{
	uid_t r, f, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &f, &s) || getresgid(&rg, &eg, &sg))
		return err_set(e, "getresuid(2): %s", strerror(errno));
	if (r != u->uid || f != u->uid || s != u->uid || rg != u->gid || eg != u->gid || sg != u->gid)
		return err_set(e, "this process does not run as the job's user");
	return 0;
}

int user_become(const struct user *u)
{
	return setgroups(u->ngroups, u->groups) || setresgid(u->gid, u->gid, u->gid) ||
		setresuid(u->uid, u->uid, u->uid) ? -1 : 0;
}

int user_open_directory(const struct user *u, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || faccessat(fd, ".", W_OK | X_OK, 0))
		err_set(e, "%s: %s", path, strerror(errno));
	else if (st.st_uid != u->uid)
		err_set(e, "%s: the directory is another user's", path);
	else if (st.st_mode & S_IWOTH)
		err_set(e, "%s: all users may write to the directory", path);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int user_confine(const struct user *u, struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set(e, "prctl(PR_SET_NO_NEW_PRIVS): %s", strerror(errno));
	/* Some sites let a user trace such a process; its output may be used for other users. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_set(e, "prctl(PR_SET_DUMPABLE): %s", strerror(errno));
	return user_check(u, e);
}
