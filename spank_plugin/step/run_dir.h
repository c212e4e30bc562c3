/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_RUN_DIR_H
#define TOPIARY_SPANK_RUN_DIR_H

#include <dirent.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * RunDir, a directory of root's on each node, and the directory of each step in it. All operations run as root, on
 * open directories, and never follow a symbolic link (openat2(2)). The slurmstepd that made a step's directory holds a
 * lock on it (flock(2)) as long as it runs; a directory without a lock is a leftover. Users may search the directory
 * but not open it, so that they cannot lock it. For step.c, monitor.c, capture.c and topology.c.
 */

/* fdopendir(3) of a descriptor or -1; closes it on failure. NULL with errno. */
DIR *run_dir_list(int fd);

/* Open RunDir, which must be owned by root and writable by root only. The descriptor, or -1 with an error. */
int run_dir_open(const char *path, struct err *e);

/*
 * Make the directory of a step, mode 0711, after removing a leftover of that name, and lock it. Its descriptor, or -1
 * with an error.
 */
int run_dir_make(int root, const char *name, struct err *e);

/* Open a directory in it, which must be root's. A descriptor, or -1. */
int run_dir_enter(int root, const char *name);

/* Make a directory in it that all may read. Its descriptor, or -1 with an error. */
int run_dir_sub(int dir, const char *name, struct err *e);

/*
 * An unnamed file in a directory, root's, mode 0644, open for reading and writing: a descriptor, or -1 with an error.
 * run_dir_link names it once it is complete, in this or another directory of RunDir; an existing name is an error. 0,
 * or -1 with an error.
 */
int run_dir_file(int dir, struct err *e);
int run_dir_link(int fd, int dir, const char *name, struct err *e);

/*
 * Mount a small tmpfs for a user over a directory of root's, so that the user can fill nothing but that. In the mount
 * namespace of the caller; it is unmounted with the step's directory. 0, or -1 with an error.
 */
int run_dir_mount_user(const char *path, uid_t uid, gid_t gid, struct err *e);

/*
 * Remove the directory of a step with its contents, a bounded number of entries: a later sweep removes the rest. 0 or
 * -1.
 */
int run_dir_remove(int root, const char *name);

/* Remove leftovers of steps whose slurmstepd was killed, with the same bound. */
void run_dir_sweep(int root);

#endif
