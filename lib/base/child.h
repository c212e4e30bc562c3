/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Child processes with a time limit and bounded output: what slurmstepd does for the user, and what hwloc or a command
 * of Slurm may crash or hang on. The child's function writes to fd and returns its exit status.
 */
typedef int child_fn(int fd, void *arg);

/*
 * Run fn in a child with a process group of its own, so that its failure cannot affect the caller. Its output, at most
 * max bytes, is stored in out, which the caller frees. The exit status, or -1 with an error when the child was killed
 * by a signal, took more than `seconds` or wrote more; then the group is killed, and a process that the kernel does
 * not release is not waited for.
 */
int child_run(child_fn *fn, void *arg, unsigned seconds, size_t max, struct buf *out, struct err *e);

/*
 * Read fd until its last writer has closed it, for at most that many seconds. 0, or -1 with errno and what was read so
 * far.
 */
int child_read(int fd, unsigned seconds, size_t max, struct buf *out);

/* The file that execvp(3) starts by this name: itself, if it has a '/', else one in a folder of PATH. false: none. */
bool child_program(const char *name, char path[static PATH_MAX]);

/* In a child: close all descriptors but 0 to 2 and these, a list terminated by -1. */
void child_keep(const int *kept);
