/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_IMAGES_H
#define TOPIARY_SPANK_IMAGES_H

#include <stdbool.h>

#include "export.h"
#include "image_worker.h"

/*
 * A cache of the topologies made on this node, for later steps with the same cores of the same export: RunDir/cache, a
 * directory of root's, has KEY.xml and KEY.shm, hard links to the files of the steps that use them. Only complete
 * files are added, each by one link(2), so that steps need no lock and a crash leaves at most a KEY.xml alone. The
 * least recently used are removed first. Called by topology.c.
 */
struct image_cache_key {
	char text[200];
};

/* Open the directory, made if needed. A descriptor, or -1: steps then work without a cache. */
int image_cache_open(int root);

/* The key of some cores of an export; NULL: all cores. */
struct image_cache_key image_cache_key(const struct export *x, const char *cores, bool is_local);

/* Link both files into a step's directory. 1, or 0 with the directory unchanged: not in the cache. */
int image_cache_link(int cache, const struct image_cache_key *key, int dir);

/* Add the files that a step made. A failure is not an error. */
void image_cache_add(int cache, const struct image_cache_key *key, const struct image_files *made);

#endif
