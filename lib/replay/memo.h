/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_MEMO_H
#define TOPIARY_REPLAY_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "replay/cluster.h"

/*
 * What was worked out of the free cores of a node, kept for all nodes of the kind that have, or come to have, just
 * these free: in a cluster bought at once, most.
 */
struct memo_question {
	unsigned what, task_cores, cores;
};

struct memo_make {
	/* An answer, or NULL when memory is short. */
	void *(*make)(const struct kind *kind, const uint64_t *free_cores, const struct memo_question *q,
		      const void *user);
	void (*drop)(void *answer);
	size_t (*bytes)(const void *answer);
};

struct memo;

/* NULL when memory is short. how and user are borrowed. */
struct memo *memo_new(const struct memo_make *how, const void *user);
void memo_free(struct memo *m);

/* The answer, borrowed until memo_trim; NULL when memory is short. */
const void *memo_get(struct memo *m, const struct kind *kind, const uint64_t *free_cores,
		     const struct memo_question *q);

/* Forget all when it has become much. */
void memo_trim(struct memo *m);

#endif
