/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/string_map.h"
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
 * A shape must precede the nodes that have it. Host lists are in Slurm's notation and not expanded here. The last line
 * is `end` with its newline; a truncated file is refused as a whole. `end` may be followed by a checksum, the SHA-256
 * of all bytes before that line in lower case, which is then verified; nothing may follow it, not even a blank. A file
 * with the line `sealed` must have a checksum. Programs write both, so that a single damage, even the loss of the
 * checksum, cannot make the file look like one written by hand, which needs neither.
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
	bool sealed;			/* it had a valid checksum: these are the bytes that were written */
};

/*
 * Parses text[len]; name is for the error, which has the line. NULL on error. Free with snapshot_free, which accepts
 * NULL.
 */
struct snapshot *snapshot_parse(const char *text, size_t len, const char *name, struct err *e);
void snapshot_free(struct snapshot *s);

/*
 * Replaces the file at path by this text, unless it has the same bytes: 1 when written, 0, or -1. Refused are text that
 * slurmctld's parser does not accept, and, without force, text without nodes in place of a snapshot that has some: an
 * empty database is nearly always the wrong one, and jobs that require a placement would wait for ever. So is, without
 * force, text of another database than the file's, and text that lacks most of the file's nodes, unless
 * `topiary forget` removed them: where both have the comment SNAPSHOT_DATABASE with the identity of their database and
 * the number of nodes that were ever removed from it. snapshot_compare replaces nothing, and is 1 where it would be.
 */
#define SNAPSHOT_DATABASE "# database "
int snapshot_compare(const char *path, const struct buf *text, bool force, struct err *e);
int snapshot_replace(const char *path, const struct buf *text, bool force, struct err *e);

#define SNAPSHOT_MAX_BYTES (16u << 20)
/* Of all shapes together, some 250 MB: a line of 20 bytes can describe 65536 cores. */
#define SNAPSHOT_MAX_DOMAINS (8u << 20)

/*
 * To write a snapshot: snapshot_start, then snapshot_add_shape and snapshot_add_nodes in any order that has a shape
 * before its nodes, then snapshot_end. out->failed is set when memory is short.
 */
void snapshot_start(struct buf *out);
void snapshot_add_shape(struct buf *out, const char *name, const char *shape);
void snapshot_add_nodes(struct buf *out, const char *hosts, const char *name);
void snapshot_end(struct buf *out);

/* The nodes of a snapshot by name: constant time, for 100,000 nodes and more. {0} is an empty one. */
struct directory {
	struct string_map names;
	const struct shape **shape;	/* by the number of the name; borrowed from the snapshot */
};

/*
 * 0, or -1 with an error: memory, an invalid host list, more names than hostlist.h allows, a node with two shapes. Free
 * it in either case.
 */
int directory_fill(struct directory *d, const struct snapshot *s, struct err *e);
void directory_free(struct directory *d);

/* NULL: unknown node. */
const struct shape *directory_shape(const struct directory *d, const char *node);
