/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CHILD_H
#define TOPIARY_SPANK_CHILD_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* What the child does: it writes to fd and returns its exit status. */
typedef int child_fn(int fd, void *arg);

/*
 * Run fn in a child, a process group of its own, so that whatever happens to it does not happen to slurmstepd. What it writes,
 * at most max bytes, is put into out, which the caller frees. The exit status, or -1 with an error when the child died of a
 * signal, took more than `seconds` or wrote more; then no process of the group is left.
 */
int child_run(child_fn *fn, void *arg, unsigned seconds, size_t max, struct buf *out, struct err *e);

#endif
