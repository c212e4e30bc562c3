/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CLIP_H
#define TOPIARY_SPANK_CLIP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The node's export at `file`, which must be root's own regular file, restricted to some of its cores (topo/restrict.h), by a
 * child process. *here says whether the export describes the system that runs now: then, and only then, its CPU numbers may be
 * bound to. 0, or -1 with an error naming the file. The caller frees out.
 */
int clip_export(const char *file, const char *cores, struct buf *out, bool *here, struct err *e);

#endif
