/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_USER_H
#define TOPIARY_SPANK_USER_H

#include <sys/types.h>

#include "base/err.h"

/* A job's user, with the supplementary groups of its tasks. For step.c, capture.c, monitor.c and launch/rank_file.c. */
struct user {
	uid_t uid;
	gid_t gid, *groups;		/* Slurm's own memory */
	int ngroups;
};

/*
 * In a child in which Slurm has dropped root for good, before it reads anything: the user's other processes cannot
 * trace it, and neither it nor what it executes can gain privileges. 0, or -1 with an error when it could, or when it
 * does not belong to that user alone.
 */
int user_confine(const struct user *u, struct err *e);

/*
 * In a child of root's: become that user for good, with these groups. No directory service is asked, which takes long
 * or blocks in a child of a process with threads. 0, or -1 with errno.
 */
int user_become(const struct user *u);

/*
 * As the user: open a directory to write to, under a name that others can guess. -1 with an error for a link, and if it
 * is another user's or all may write to it: files there could be read or replaced.
 */
int user_open_directory(const struct user *u, const char *path, struct err *e);

/* Has root been dropped permanently for that user? 0, or -1 with an error. */
int user_check(const struct user *u, struct err *e);

#endif
