/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/order.h"

#include <stdlib.h>

static int by_key(const void *a, const void *b, void *of)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;
	const double *key = of;

	if (key[x] != key[y])
		return key[x] < key[y] ? -1 : 1;
	return (x > y) - (x < y);
}

void order_by(const double *key, unsigned n, unsigned *order)
{
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_key, (void *) key);
}
