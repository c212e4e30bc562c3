/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_RUN_DIR_H
#define TOPIARY_SPANK_RUN_DIR_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * RunDir, root's own folder on a node, and the folder of each step below it. All of it is done by root, on open folders only,
 * and never through a symbolic link (openat2(2)). Whoever made a step's folder holds a lock on it (flock(2)) for as long as it
 * lives; a folder without is a leftover. So that nobody else can hold one, users may enter the folder and not open it.
 */

/* Open RunDir, which must be root's and writable by root alone. The descriptor, or -1. */
int run_dir_open(const char *path, struct err *e);

/* Make the folder of a step, mode 0711, after removing a leftover of that name, and lock it. Its descriptor, or -1. */
int run_dir_make(int root, const char *name, struct err *e);

/* A folder there, opened as one of root's own. A descriptor, or -1. */
int run_dir_enter(int root, const char *name);

/* Make a folder there for all to read. Its descriptor, or -1. */
int run_dir_sub(int dir, const char *name, struct err *e);

/*
 * A file without a name in a folder, root's, mode 0644, open for both: a descriptor, or -1. Once it is whole it is given one,
 * here or in another folder of RunDir, which must not be taken: 0 or -1.
 */
int run_dir_file(int dir, struct err *e);
int run_dir_link(int fd, int dir, const char *name, struct err *e);

/* Make a folder there that belongs to a user, mode 0700. 0 or -1. */
int run_dir_give(int dir, const char *name, uid_t uid, gid_t gid, struct err *e);

/* Remove the folder of a step and what is in it, a bounded number of entries: what is left goes with a later sweep. 0 or -1. */
int run_dir_remove(int root, const char *name);

/* Remove leftovers of steps that did not end in order, with the same bound. */
void run_dir_sweep(int root);

#endif
