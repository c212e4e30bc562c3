/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_HWDIFF_H
#define TOPIARY_TOPO_HWDIFF_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The difference of two topologies as hwloc's own XML (hwloc/diff.h), for hwloc-patch(1). Both are what canon_parse accepts; hwloc
 * may stumble over those too, and does so in a process of its own. 0, appended to out; 1 when hwloc cannot express it, which is
 * so whenever an object came or went; -1 with an error.
 */
int hwdiff_xml(const char *a, size_t alen, const char *b, size_t blen, struct buf *out, struct err *e);

#endif
