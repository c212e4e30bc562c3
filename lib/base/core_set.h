/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Sets of the cores of one node: core c is bit c % 64 of word c / 64, and the bits after the last core are 0. A set is
 * an array of core_set_words(cores) words in memory of the caller. The score, the select plugin and the replay use
 * them.
 */
static inline unsigned core_set_words(unsigned cores)
{
	return (cores + 63) / 64;
}

static inline bool core_set_has(const uint64_t *set, unsigned core)
{
	return set[core / 64] >> core % 64 & 1;
}

static inline void core_set_add(uint64_t *set, unsigned core)
{
	set[core / 64] |= 1ull << core % 64;
}

static inline void core_set_remove(uint64_t *set, unsigned core)
{
	set[core / 64] &= ~(1ull << core % 64);
}

static inline void core_set_add_range(uint64_t *set, unsigned first, unsigned cores)
{
	for (unsigned c = first; c < first + cores; c++)
		core_set_add(set, c);
}

/* All cores of a node. */
static inline void core_set_fill(uint64_t *set, unsigned cores)
{
	for (unsigned w = 0; w < core_set_words(cores); w++)
		set[w] = ~0ull;
	if (cores % 64)
		set[cores / 64] = (1ull << cores % 64) - 1;
}

/* The set becomes what is not in `other`, which has as many cores and may be the set itself. */
static inline void core_set_complement(uint64_t *set, const uint64_t *other, unsigned cores)
{
	for (unsigned w = 0; w < core_set_words(cores); w++)
		set[w] = ~other[w];
	if (cores % 64)
		set[cores / 64] &= (1ull << cores % 64) - 1;
}

static inline void core_set_subtract(uint64_t *set, const uint64_t *other, unsigned words)
{
	for (unsigned w = 0; w < words; w++)
		set[w] &= ~other[w];
}

static inline bool core_set_is_within(const uint64_t *set, const uint64_t *other, unsigned words)
{
	for (unsigned w = 0; w < words; w++)
		if (set[w] & ~other[w])
			return false;
	return true;
}

static inline unsigned core_set_count(const uint64_t *set, unsigned words)
{
	unsigned n = 0;

	for (unsigned w = 0; w < words; w++)
		n += __builtin_popcountll(set[w]);
	return n;
}

/* The first core of the set from `from` on, or -1. */
static inline int core_set_next(const uint64_t *set, unsigned words, unsigned from)
{
	uint64_t left = from / 64 < words ? set[from / 64] & ~0ull << from % 64 : 0;

	for (unsigned w = from / 64; w < words; left = ++w < words ? set[w] : 0)
		if (left)
			return w * 64 + __builtin_ctzll(left);
	return -1;
}

#define core_set_each(core, set, words)	\
	for (int core = core_set_next(set, words, 0); core >= 0; core = core_set_next(set, words, core + 1))
