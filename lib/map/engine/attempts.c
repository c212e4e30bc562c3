/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/attempts.h"

#include <stdlib.h>
#include <string.h>

#include "map/matrix/draw.h"
#include "map/engine/tuning.h"

/* In a hash table, where a collision replaces the earlier entry. */
struct attempt {
	unsigned level, one, other, when;
};

int attempts_init(struct attempts *a, const struct slots *s)
{
	*a = (struct attempts){ .s = s };
	for (unsigned t = 0; t < s->nlevels; t++)
		a->domains += s->level[t].n;
	a->changed[0] = calloc(a->domains + 1, sizeof(*a->changed[0]));
	a->kept = calloc(a->domains + 1, sizeof(*a->kept));
	a->memory = calloc(PAIR_MEMORY, sizeof(*a->memory));
	if (!a->changed[0] || !a->kept || !a->memory)
		return -1;
	for (unsigned t = 1; t < s->nlevels; t++)
		a->changed[t] = a->changed[t - 1] + s->level[t - 1].n;
	return 0;
}

void attempts_free(struct attempts *a)
{
	free(a->changed[0]);
	free(a->kept);
	free(a->memory);
}

bool attempts_add(struct attempts *a, unsigned level, unsigned one, unsigned other)
{
	struct attempt now = { level, one < other ? one : other, one < other ? other : one, ++a->now };
	uint64_t key = ((uint64_t) now.one << 32 | now.other) + ((uint64_t) level << 56);
	struct attempt *last = &a->memory[draw_below(&key, PAIR_MEMORY)];
	bool in_vain = last->level == level && last->one == now.one && last->other == now.other &&
		last->when > a->changed[level][one] && last->when > a->changed[level][other];

	*last = now;
	return !in_vain;
}

void attempts_change(struct attempts *a, unsigned slot)
{
	for (unsigned t = 0; t < a->s->nlevels; t++)
		a->changed[t][a->s->level[t].of[slot]] = a->now;
}

void attempts_keep(struct attempts *a)
{
	memcpy(a->kept, a->changed[0], a->domains * sizeof(*a->kept));
}

void attempts_return(struct attempts *a)
{
	memcpy(a->changed[0], a->kept, a->domains * sizeof(*a->kept));
}
