/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hwview/restrict.h"

static int index_parse(const char **at, size_t max, size_t *index)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char) **at))
		return -1;
	errno = 0;
	n = strtoul(*at, &end, 10);
	if (errno || n >= max)
		return -1;
	*index = n;
	*at = end;
	return 0;
}

static int range_parse(const char **at, size_t max, size_t *first, size_t *last)
{
	if (index_parse(at, max, first))
		return -1;
	*last = *first;
	if (**at != '-')
		return 0;
	++*at;
	return index_parse(at, max, last) || *last < *first ? -1 : 0;
}

int cores_parse(const char *list, unsigned char *wanted, size_t max, struct err *e)
{
	const char *at = list;
	size_t first, last;

	memset(wanted, 0, max);
	for (;; at++) {
		if (range_parse(&at, max, &first, &last) || (*at && *at != ','))
			return err_set(e, "core list '%.100s': invalid at '%.20s' (the node has %zu cores)", list, at,
				       max);
		memset(wanted + first, 1, last - first + 1);
		if (!*at)
			return 0;
	}
}
