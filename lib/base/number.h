/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Decimal numbers in foreign text: digits only, neither blanks nor a sign before them, and a bound. *at is moved behind
 * what was read. 0, or -1 with *at where it is wrong.
 */
static inline int number_read_long(const char **at, uint64_t max, uint64_t *out)
{
	unsigned long long n;
	char *end;

	if (**at < '0' || **at > '9')
		return -1;
	errno = 0;
	n = strtoull(*at, &end, 10);
	if (errno || n > max)
		return -1;
	*out = n;
	*at = end;
	return 0;
}

static inline int number_read(const char **at, unsigned max, unsigned *out)
{
	uint64_t n;

	if (number_read_long(at, max, &n))
		return -1;
	*out = n;
	return 0;
}

/* "4", which is also the last, or "4-7". */
static inline int number_read_range(const char **at, unsigned max, unsigned *first, unsigned *last)
{
	if (number_read(at, max, first))
		return -1;
	*last = *first;
	if (**at != '-')
		return 0;
	++*at;
	return number_read(at, max, last) || *last < *first ? -1 : 0;
}
