/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TOPOLOGY_H
#define TOPIARY_SPANK_TOPOLOGY_H

#include <hwloc.h>

#include "base/err.h"

/*
 * Write the node's export, restricted to some of its cores (NULL: all), into a step's directory, as XML and as image
 * (hwview/image.h). Those of an earlier step with the same cores are linked from the cache in microseconds; otherwise
 * a child process makes them, and they are added to it. root and dir are RunDir and the directory. *is_local: the
 * export describes this machine, so that its CPU numbers may be bound to. Called by step.c. 0, or -1 with an error
 * that names the export.
 */
int topology_write(const char *file, const char *cores, int root, int dir, bool *is_local, struct err *e);

#endif
