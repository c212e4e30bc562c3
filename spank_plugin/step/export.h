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
 * What a step must know of the node's export without parsing it: its hash and its CPUs. The step that parses it
 * records them, so that later steps need not. For topology.c, image_worker.c and image_cache.c.
 */
struct export {
	char hash[HASH_HEX];
	char cpus[2048];	/* the CPUs in it, in hwloc's list format */
	char complete[2048];	/* and its complete cpuset */
};

/* Open it: a regular file owned by root and writable by root only. A descriptor, or -1 with an error. */
int export_open(const char *file, struct stat *st, struct err *e);

/* Read its text and set out->hash. 0, or -1 with an error. The caller frees xml. */
int export_read(int fd, struct buf *xml, struct export *out, struct err *e);

/* Set out->cpus and out->complete from the topology. 0, or -1: the lists are too long. */
int export_list_cpus(hwloc_topology_t t, struct export *out);

/* The CPUs that the kernel has, and those of them that are online. */
struct export_cpus {
	hwloc_bitmap_t present, online;
};

/* 0, or -1 with an error. The caller frees out with export_cpus_free in any case. */
int export_cpus_read(struct export_cpus *out, struct err *e);
void export_cpus_free(struct export_cpus *cpus);

/*
 * Does the export describe the machine with these CPUs? Only then may its CPU numbers be bound to; *offline: not to all
 * of them, because some of the export's are offline now.
 */
bool export_is_local(const struct export *x, const struct export_cpus *cpus, bool *offline);

/* The name of the record in the cache directory. */
#define EXPORT_RECORD "export"

/*
 * Look up the record of the same export in a directory of root's: by the file's identity (inode, size and times), or
 * by out->hash. 1 with all of out set, or 0. export_record writes the record; a failure to write is not an error.
 */
int export_recall(int dir, const struct stat *st, struct export *out);
int export_recall_hash(int dir, struct export *out);
void export_record(int dir, const struct stat *st, const struct export *x);

#endif
