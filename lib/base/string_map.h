/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"

/*
 * A hash map from strings, or keys of any bytes, to consecutive numbers: 0 for the first key added, 1 for the next.
 * Values are kept by the caller in an array indexed by that number. {0} is an empty map. Not thread-safe. Used by
 * lib/shape (directory, snapshot), lib/fabric (ends of cables) and topiaryd (known nodes).
 */
struct string_map {
	size_t count;
	struct buf keys;		/* one after the other */
	struct string_map_slot {
		uint32_t hash;
		uint32_t number;	/* from 1, 0 for none */
		size_t at, len;		/* in keys */
	} *slots;			/* open addressing; size is 0 or a power of two */
	size_t size;
};

#define STRING_MAP_NONE SIZE_MAX

/* The number of a key, STRING_MAP_NONE when it is not in the map. */
size_t string_map_find_bytes(const struct string_map *m, const void *key, size_t len);

/*
 * The number of a key, which is added when it is new (count has then grown). STRING_MAP_NONE, and *m unchanged, when
 * memory is short.
 */
size_t string_map_add_bytes(struct string_map *m, const void *key, size_t len);

static inline size_t string_map_find(const struct string_map *m, const char *s)
{
	return string_map_find_bytes(m, s, strlen(s));
}

static inline size_t string_map_add(struct string_map *m, const char *s)
{
	return string_map_add_bytes(m, s, strlen(s));
}

/* 32 bits, for other tables keyed by strings too. */
uint32_t string_hash(const char *s);

/* Leaves {0}. */
void string_map_free(struct string_map *m);
