/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_SNAPSHOT_H
#define TOPIARY_TOPO_SNAPSHOT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "topo/shape.h"

/*
 * The snapshot: all that slurmctld knows of the nodes' hardware, in plain text that may be written by hand.
 *
 *	topiary-snapshot 1
 *	# a comment
 *	shape S1 Package:2 [NUMANode] L3Cache:1 Core:6 PU:1
 *	nodes cn[001-512] S1
 *	end sha256=4a1f...
 *
 * A shape comes before the nodes that have it. A host list is in Slurm's notation and is not expanded here. The last line is
 * `end`; after it the checksum (SHA-256 of all bytes before that line) may stand, and is then checked: what programs write
 * carries one, what a person writes need not. A file without its `end`, cut in half, is refused whole.
 */
struct snapshot_shape {
	char *name;
	struct shape *shape;
};

struct snapshot_nodes {
	char *hosts;			/* Slurm host list expression */
	const struct shape *shape;	/* borrowed from shapes */
};

struct snapshot {
	struct snapshot_shape *shapes;
	size_t nshapes;
	struct snapshot_nodes *nodes;
	size_t nnodes;
};

/* Read text[len]; name is for the error, which gives the line. NULL on error. Free with snapshot_free, which accepts NULL. */
struct snapshot *snapshot_parse(const char *text, size_t len, const char *name, struct err *e);
void snapshot_free(struct snapshot *s);

#define SNAPSHOT_MAX_BYTES (16u << 20)

/*
 * Write a snapshot: snapshot_start, then snapshot_add_shape and snapshot_add_nodes in any order that names a shape before
 * its nodes, then snapshot_end. Failures of memory are in out->failed.
 */
void snapshot_start(struct buf *out);
void snapshot_add_shape(struct buf *out, const char *name, const char *shape);
void snapshot_add_nodes(struct buf *out, const char *hosts, const char *name);
void snapshot_end(struct buf *out);

#endif
