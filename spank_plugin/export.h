/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_EXPORT_H
#define TOPIARY_SPANK_EXPORT_H

#include <hwloc.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

/*
 * The node's export as far as a step must know it: what it is, and which CPUs it tells of. Whoever has parsed it once writes that
 * down, so that later steps need not.
 */
struct export {
	char hash[HASH_HEX];
	char cpus[2048];	/* those that it has, as a list of hwloc's */
	char complete[2048];	/* and those that it knows of */
};

/* Open it: a regular file of root's that root alone may write. A descriptor, or -1. */
int export_open(const char *file, struct stat *st, struct err *e);

/* Its text; out->hash is set. 0 or -1. The caller frees out. */
int export_read(int fd, struct buf *xml, struct export *out, struct err *e);

/* What the topology says of its CPUs. -1: more than there is room for. */
int export_look(hwloc_topology_t t, struct export *out);

/* The CPUs that the kernel has now. NULL when memory is short. */
hwloc_bitmap_t export_cpus_now(void);

/* Whether it describes the system that has these: then, and only then, its CPU numbers may be bound to. */
bool export_is_here(const struct export *x, hwloc_const_bitmap_t now);

/* The note's name. */
#define EXPORT_NOTE "export"

/*
 * The same export read before, noted in a folder of root's own: by the file's identity alone, or, with hash set, by that. 1 with all of
 * out set, or 0. export_note writes it there; that it cannot be is no error.
 */
int export_recall(int folder, const struct stat *st, struct export *out);
int export_recall_hash(int folder, struct export *out);
void export_note(int folder, const struct stat *st, const struct export *x);

#endif
