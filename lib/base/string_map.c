/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/string_map.h"

#define FIRST_SIZE 64u

/*
 * FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv), folded to 32 bits. Not keyed: the strings are short, and a slow
 * look-up gains an attacker nothing.
 */
static uint32_t bytes_hash(const void *key, size_t len)
{
	const unsigned char *at = key;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ at[i]) * 1099511628211u;
	return h ^ (h >> 32);
}

uint32_t string_hash(const char *s)
{
	return bytes_hash(s, strlen(s));
}

/* The slot of the key, or the free slot where it would be added. */
static struct string_map_slot *slot_find(const struct string_map *m, const void *key, size_t len, uint32_t hash)
{
	size_t i = hash & (m->size - 1);

	while (m->slots[i].number && (m->slots[i].hash != hash || m->slots[i].len != len ||
				      memcmp(m->keys.data + m->slots[i].at, key, len)))
		i = (i + 1) & (m->size - 1);
	return &m->slots[i];
}

static int slots_grow(struct string_map *m)
{
	size_t size = m->size ? 2 * m->size : FIRST_SIZE;
	struct string_map_slot *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t old = 0; old < m->size; old++) {
		size_t i = m->slots[old].hash & (size - 1);

		if (!m->slots[old].number)
			continue;
		while (slots[i].number)
			i = (i + 1) & (size - 1);
		slots[i] = m->slots[old];
	}
	free(m->slots);
	m->slots = slots;
	m->size = size;
	return 0;
}

size_t string_map_find_bytes(const struct string_map *m, const void *key, size_t len)
{
	const struct string_map_slot *s = m->size ? slot_find(m, key, len, bytes_hash(key, len)) : NULL;

	return s && s->number ? s->number - 1 : STRING_MAP_NONE;
}

size_t string_map_add_bytes(struct string_map *m, const void *key, size_t len)
{
	uint32_t hash = bytes_hash(key, len);
	size_t at = m->keys.len;
	struct string_map_slot *s;

	if (4 * (m->count + 1) > 3 * m->size && (m->count == UINT32_MAX || slots_grow(m)))
		return STRING_MAP_NONE;
	s = slot_find(m, key, len, hash);
	if (s->number)
		return s->number - 1;
	buf_add(&m->keys, key, len);
	if (m->keys.failed)
		return STRING_MAP_NONE;
	*s = (struct string_map_slot){ .hash = hash, .number = ++m->count, .at = at, .len = len };
	return s->number - 1;
}

void string_map_free(struct string_map *m)
{
	buf_free(&m->keys);
	free(m->slots);
	*m = (struct string_map){0};
}
