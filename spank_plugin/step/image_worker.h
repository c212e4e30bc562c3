/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CLIP_H
#define TOPIARY_SPANK_CLIP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "export.h"

/*
 * The child process that makes a step's topology: it alone parses the export. Called by topology.c.
 */
struct image_request {
	const struct buf *xml;		/* the node's export */
	const char *cores;		/* to keep (hwview/restrict.h); NULL: all */
	const struct export_cpus *cpus;
};

/* The files to write: new and empty, open for reading and writing. */
struct image_files {
	int xml, shm;
};

/*
 * Restrict the node's export to some of its cores, less the CPUs that are offline, in a sandboxed child process
 * (confine.h), and write it as XML and as image (hwview/image.h) to those files, verified. Sets the CPU lists of x;
 * *is_local: the image may be bound to. 0, or -1 with an error.
 */
int image_worker_run(const struct image_request *r, const struct image_files *into, struct export *x, bool *is_local,
	struct err *e);

#endif
