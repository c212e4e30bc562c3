/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_FRONT_CACHE_H
#define TOPIARY_REPLAY_FRONT_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "replay/cluster.h"

/*
 * A cache of results computed from the free cores of a node, shared by all nodes of the kind with the same free cores:
 * most of them, in a cluster bought at once.
 */
struct front_ops {
	/* Computes a result; NULL when memory is short. */
	void *(*make)(const struct cluster_kind *kind, const uint64_t *free_cores, unsigned task_cores,
		      const void *user);
	void (*drop)(void *answer);
	size_t (*bytes)(const void *answer);
};

struct front_cache;

/* NULL when memory is short. how and user are borrowed. */
struct front_cache *front_cache_new(const struct front_ops *how, const void *user);
void front_cache_free(struct front_cache *m);

/* The result, borrowed until front_cache_trim; NULL when memory is short. */
const void *front_cache_get(struct front_cache *m, const struct cluster_kind *kind, const uint64_t *free_cores,
			    unsigned task_cores);

/* Empties the cache when it has become large. */
void front_cache_trim(struct front_cache *m);

#endif
