/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_DRAW_H
#define TOPIARY_TOPO_DRAW_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * A node's exported topology drawn as SVG by hwloc's own lstopo, the given cores (a list as in topo/restrict.h, NULL: none)
 * coloured. The XML must come from a registry that checked it. 0, or -1 with out untouched. The caller frees out.
 */
int draw_svg(const char *xml, size_t len, const char *cores, struct buf *out, struct err *e);

#endif
