/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CLIP_H
#define TOPIARY_SPANK_CLIP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "export.h"

/* Where a topology goes: new empty files, open for reading and writing. */
struct clipped {
	int xml, shm;
};

/*
 * The node's export restricted to some of its cores (topo/restrict.h; NULL: all of it), by a child process: both forms of it
 * (topo/image.h) into those files. What the child saw of its CPUs is put into x, and *here says whether the image binds to them:
 * now are those that the kernel has. 0 or -1.
 */
int clip_export(const struct buf *xml, const char *cores, hwloc_const_bitmap_t now, const struct clipped *into, struct export *x,
		bool *here, struct err *e);

#endif
