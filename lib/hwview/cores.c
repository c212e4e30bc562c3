/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/number.h"
#include "hwview/restrict.h"

int cores_parse(const char *list, unsigned char *wanted, size_t max, struct err *e)
{
	const char *at = list;
	unsigned first, last;

	memset(wanted, 0, max);
	for (;; at++) {
		if (!max || number_read_range(&at, max - 1, &first, &last) || (*at && *at != ','))
			return err_set(e, "core list '%.100s': invalid at '%.20s' (the node has %zu cores)", list, at,
				       max);
		memset(wanted + first, 1, last - first + 1);
		if (!*at)
			return 0;
	}
}
