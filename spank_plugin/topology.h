/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_TOPOLOGY_H
#define TOPIARY_SPANK_TOPOLOGY_H

#include <stdbool.h>

#include "base/err.h"
#include "user.h"

/*
 * Put the node's export, restricted to some of its cores (NULL: all of it), into a step's folder, in both forms (topo/image.h):
 * those that an earlier step had are linked there in microseconds; otherwise a child process makes them, and they are kept. root
 * and dir are RunDir and the folder; the child runs as that user. *here as export_is_here has it. 0, or -1 with an error that names
 * the export.
 */
int topology_put(const char *file, const char *cores, const struct user *as, int root, int dir, bool *here, struct err *e);

#endif
