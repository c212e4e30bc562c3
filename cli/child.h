/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Run work(given, out) in a child process with stderr closed, for at most that many seconds: hwloc 2.9 can abort or
 * crash on documents and strings from elsewhere, and daemons may not answer. The bytes that work appended are returned
 * in *out, which the caller frees. 0, or -1 with out untouched when work returned -1 (its error is then in e) or the
 * child died.
 */
#define CHILD_SECONDS 600	/* of work that computes, whatever else the machine does */
int cmd_child(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, unsigned seconds,
	      struct buf *out, struct err *e);

/*
 * Run a program, found by PATH, with an empty standard input and Slurm's times in their standard form: its exit
 * status, 127 if it cannot be started, and what it prints on stdout, at most max bytes, in *out, which the caller
 * frees. Its stderr is ours, goes to *out, too, or nowhere. -1 with an error: as child_run (base/child.h).
 */
enum cmd_stderr { STDERR_OURS, STDERR_TOO, STDERR_DROPPED };
int cmd_program(const char *const argv[], enum cmd_stderr how, unsigned seconds, size_t max, struct buf *out,
		struct err *e);

/*
 * The environment that another process was started with, which the caller frees, of our own processes alone: 0 or -1. A
 * variable in it, "" where it is not set. The process's parent; 0: not known.
 */
int cmd_process_environ(pid_t pid, struct buf *out);
const char *cmd_environ_get(const struct buf *environ_of, const char *name);
pid_t cmd_process_parent(pid_t pid);
