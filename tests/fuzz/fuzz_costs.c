/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "map/places/places.h"

/* Words that are refused leave every cost as it was. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words = begin_with("", data, &size);
	struct places *p = places_new();

	if (!p)
		abort();
	if (places_costs(p, words, NULL) && memcmp(p->cost, level_default_cost, sizeof(p->cost)))
		abort();
	for (int i = 0; i < LEVEL_COUNT; i++)
		if (!(p->cost[i] >= 0 && p->cost[i] <= 1000000))
			abort();
	places_free(p);
	free(words);
	return 0;
}
