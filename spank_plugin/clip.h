/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CLIP_H
#define TOPIARY_SPANK_CLIP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "export.h"
#include "user.h"

/* What is asked for. */
struct clip_ask {
	const struct buf *xml;		/* the node's export */
	const char *cores;		/* those that are to stay (topo/restrict.h); NULL: all */
	hwloc_const_bitmap_t now;	/* the CPUs that the kernel has */
	const struct user *as;		/* who the child becomes */
};

/* Where a topology goes: new empty files, open for reading and writing. */
struct clipped {
	int xml, shm;
};

/*
 * The node's export restricted to some of its cores, by a child process that has nothing but those files: both forms of it
 * (topo/image.h) into them. What the child saw of its CPUs is put into x, and *here says whether the image binds to them. 0 or -1.
 */
int clip_export(const struct clip_ask *ask, const struct clipped *into, struct export *x, bool *here, struct err *e);

#endif
