/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_SNAPSHOT_H
#define TOPIARY_SHAPE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "shape/shape.h"

/*
 * The snapshot: all that slurmctld knows of the nodes' hardware, in plain text that may be written by hand.
 *
 *	topiary-snapshot 1
 *	sealed
 *	# a comment
 *	shape S1 Package:2 [NUMANode] L3Cache:1 Core:6 PU:1
 *	nodes cn[001-512] S1
 *	end sha256=4a1f...
 *
 * A shape comes before the nodes that have it. A host list is in Slurm's notation and is not expanded here. The last
 * line is `end` with its newline; a file that is cut is refused whole. Behind `end` the checksum may stand, the SHA-256
 * of all bytes before that line in lower case; it is then checked, and not even a blank may follow. After `sealed` it
 * must: what programs write is sealed, so that no damage to it in one place, be it the loss of the checksum itself,
 * passes for what a person wrote, who needs neither.
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
	bool sealed;			/* it carried its checksum: these are the bytes that were written */
};

/*
 * Read text[len]; name is for the error, which gives the line. NULL on error. Free with snapshot_free, which accepts
 * NULL.
 */
struct snapshot *snapshot_parse(const char *text, size_t len, const char *name, struct err *e);
void snapshot_free(struct snapshot *s);

#define SNAPSHOT_MAX_BYTES (16u << 20)
/* Of all shapes together, some 250 MB: a line of 20 bytes can stand for 65536 cores. */
#define SNAPSHOT_MAX_DOMAINS (8u << 20)

/*
 * Write a snapshot: snapshot_start, then snapshot_add_shape and snapshot_add_nodes in any order that names a shape
 * before its nodes, then snapshot_end. Failures of memory are in out->failed.
 */
void snapshot_start(struct buf *out);
void snapshot_add_shape(struct buf *out, const char *name, const char *shape);
void snapshot_add_nodes(struct buf *out, const char *hosts, const char *name);
void snapshot_end(struct buf *out);

#endif
