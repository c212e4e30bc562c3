/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * The difference of two topologies as hwloc's own XML (hwloc/diff.h), for hwloc-patch(1); called by `topiary diff`.
 * Both are accepted by canon_parse; hwloc may still crash on them and therefore runs in a child process. 0, appended to
 * out; 1 when hwloc cannot express the difference, which is the case whenever an object is gone or new; -1 with an
 * error.
 */
int hwdiff_xml(const char *a, size_t alen, const char *b, size_t blen, struct buf *out, struct err *e);
