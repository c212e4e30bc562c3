/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BASE_STRING_MAP_H
#define TOPIARY_BASE_STRING_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * A hash map from strings to consecutive numbers: 0 for the first string added, 1 for the next. Values are kept by the
 * caller in an array indexed by that number. {0} is an empty map. Not thread-safe. Used by lib/shape (directory,
 * snapshot) and topiaryd (known nodes).
 */
struct string_map {
	size_t count;
	struct buf text;		/* the strings, each with its NUL */
	struct string_map_slot {
		uint32_t hash;
		uint32_t number;	/* from 1, 0 for none */
		size_t at;		/* in text */
	} *slots;			/* open addressing; size is 0 or a power of two */
	size_t size;
};

#define STRING_MAP_NONE SIZE_MAX

/* The number of a string, STRING_MAP_NONE when it is not in the map. */
size_t string_map_find(const struct string_map *m, const char *s);

/*
 * The number of a string, which is added when it is new (count has then grown). STRING_MAP_NONE, and *m unchanged, when
 * memory is short.
 */
size_t string_map_add(struct string_map *m, const char *s);

/* 32 bits, for other tables keyed by strings too. */
uint32_t string_hash(const char *s);

/* Leaves {0}. */
void string_map_free(struct string_map *m);

#endif
