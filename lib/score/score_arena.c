/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_arena.h"

#include <stdlib.h>

#define BLOCK ((size_t) 64 << 10)	/* enough for a node of 128 cores */

struct score_block {
	struct score_block *next;
	size_t bytes;
};

static int arena_grow(struct score_arena *a, size_t bytes)
{
	size_t size = a->blocks ? 2 * a->blocks->bytes : BLOCK;
	struct score_block *b;

	if (size < bytes)
		size = bytes;
	if (!(b = malloc(sizeof(*b) + size)))
		return -1;
	*b = (struct score_block){ .next = a->blocks, .bytes = size };
	a->blocks = b;
	a->at = (char *) (b + 1);
	a->room = size;
	return 0;
}

void *score_arena_get(struct score_arena *a, size_t bytes)
{
	char *got;

	bytes = (bytes + 7) & ~(size_t) 7;
	if (bytes > a->room && arena_grow(a, bytes))
		return NULL;
	got = a->at;
	a->at += bytes;
	a->room -= bytes;
	return got;
}

void score_arena_free(struct score_arena *a)
{
	while (a->blocks) {
		struct score_block *b = a->blocks;

		a->blocks = b->next;
		free(b);
	}
	a->at = NULL;
	a->room = 0;
}
