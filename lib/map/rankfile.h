/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_RANKFILE_H
#define TOPIARY_MAP_RANKFILE_H

#include "base/buf.h"
#include "base/err.h"
#include "map/places.h"
#include "map/solve.h"

/*
 * Write the mapping for a launcher: "plain" (one line `rank host leaf[,leaf...]`), "openmpi" (Open MPI 4.1, mpirun(1)
 * "Rankfiles": `rank N=host slot=S[,S...]` with S the logical core within the restricted topology; rank 0 first). Another
 * name is an error that lists them. 0 or -1.
 */
int rankfile_write(const char *format, const struct places *p, const struct mapping *m, struct buf *out, struct err *e);

#endif
