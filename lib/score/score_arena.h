/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_SCORE_ARENA_H
#define TOPIARY_SCORE_SCORE_ARENA_H

#include <stddef.h>

/* Memory of one call, freed at once. Initialise with {0}. */
struct score_arena {
	struct score_block *blocks;
	char *at;
	size_t room;
};

/* Not cleared, aligned for any count or pointer; NULL when memory is short. */
void *score_arena_get(struct score_arena *a, size_t bytes);
void score_arena_free(struct score_arena *a);

#endif
