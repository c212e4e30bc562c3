/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Pseudo-random numbers, the same on every machine for the same seed: SplitMix64 (Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014). State: any 64 bits.
 */
static inline uint64_t draw_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 .. below-1 */
static inline unsigned draw_below(uint64_t *state, unsigned below)
{
	return (draw_bits(state) >> 32) * below >> 32;
}

/* 0 <= x < 1 */
static inline double draw_unit(uint64_t *state)
{
	return (draw_bits(state) >> 11) * 0x1p-53;
}
