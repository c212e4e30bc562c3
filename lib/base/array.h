/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Arrays that grow at their end, of any type: a pointer, NULL at first, and the number of elements. No capacity is
 * stored: the memory of n elements is that of the next power of two, at least 8, or more. An array that was allocated
 * or shrunk by other means must not grow by these. The caller frees it with free().
 */

static inline size_t array_capacity_(size_t n)
{
	return n <= 8 ? 8 : (size_t) 1 << (64 - __builtin_clzll(n - 1));
}

static inline int array_reserve_(void *at, size_t n, size_t more, size_t size)
{
	void *array, *bigger;
	size_t sum;

	memcpy(&array, at, sizeof(array));
	if (__builtin_add_overflow(n, more, &sum) || sum > SIZE_MAX / 2 / size)
		return -1;
	if (array && sum <= array_capacity_(n))
		return 0;
	if (!(bigger = realloc(array, array_capacity_(sum) * size)))
		return -1;
	memcpy(at, &bigger, sizeof(bigger));
	return 0;
}

/*
 * Memory for `more` elements after the n of the array. 0, or -1 with the array unchanged when memory is short. It holds
 * until the next call for this array.
 */
#define array_reserve(array, n, more) array_reserve_(&(array), (n), (more), sizeof(*(array)))

/* New elements, all zero, at the end: the first of them, n counts them. NULL, with both unchanged: memory is short. */
#define array_append(array, n, more) \
	(array_reserve(array, n, more) ? NULL : \
	 (typeof(&*(array))) memset(&(array)[((n) += (more)) - (more)], 0, (more) * sizeof(*(array))))

/* One new element. */
#define array_add(array, n) array_append(array, n, 1)
