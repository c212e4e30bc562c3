/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/roster.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64u

/* FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv), folded to half: the names are short, and nobody gains by a slow look-up. */
static uint32_t name_hash(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (unsigned char) *s) * 1099511628211u;
	return h ^ (h >> 32);
}

/* The slot of the name, or the free one where it would be. */
static struct roster_slot *slot_of(const struct roster *r, const char *name, uint32_t hash)
{
	size_t i = hash & (r->size - 1);

	while (r->slots[i].number && (r->slots[i].hash != hash || strcmp(r->text.data + r->slots[i].at, name)))
		i = (i + 1) & (r->size - 1);
	return &r->slots[i];
}

static int slots_grow(struct roster *r)
{
	size_t size = r->size ? 2 * r->size : FIRST_SIZE;
	struct roster_slot *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t old = 0; old < r->size; old++) {
		size_t i = r->slots[old].hash & (size - 1);

		if (!r->slots[old].number)
			continue;
		while (slots[i].number)
			i = (i + 1) & (size - 1);
		slots[i] = r->slots[old];
	}
	free(r->slots);
	r->slots = slots;
	r->size = size;
	return 0;
}

size_t roster_find(const struct roster *r, const char *name)
{
	const struct roster_slot *s = r->size ? slot_of(r, name, name_hash(name)) : NULL;

	return s && s->number ? s->number - 1 : ROSTER_NONE;
}

size_t roster_add(struct roster *r, const char *name)
{
	uint32_t hash = name_hash(name);
	size_t at = r->text.len;
	struct roster_slot *s;

	if (4 * (r->count + 1) > 3 * r->size && (r->count == UINT32_MAX || slots_grow(r)))
		return ROSTER_NONE;
	s = slot_of(r, name, hash);
	if (s->number)
		return s->number - 1;
	buf_add(&r->text, name, strlen(name) + 1);
	if (r->text.failed)
		return ROSTER_NONE;
	*s = (struct roster_slot){ .hash = hash, .number = ++r->count, .at = at };
	return s->number - 1;
}

void roster_free(struct roster *r)
{
	buf_free(&r->text);
	free(r->slots);
	*r = (struct roster){0};
}
