/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "map/places/places.h"

#define RANKS_MAX 500u		/* more only take time */

/* As `topiary map --distances` takes any matrix: distances are finite, the same both ways, and none to oneself. */
static void check(const struct places *p, unsigned n)
{
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++) {
			double d = places_distance(p, a, b);

			if (!(d >= 0) || !isfinite(d) || (a == b && d != 0) || d != places_distance(p, b, a))
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct matrix *m = matrix_parse((const char *) data, size, "fuzz", NULL);
	struct places *p = places_new();
	struct hierarchy_host host;

	if (m && p && m->ranks <= RANKS_MAX) {
		host = (struct hierarchy_host){ .name = "-", .inner = { .levels = 1, .size = { m->ranks },
									.cost = { 1 } } };
		if (places_add_inner(p, &host, NULL) == 0 && places_distances(p, m, NULL) == 0)
			check(p, m->ranks);
	}
	places_free(p);
	matrix_free(m);
	return 0;
}
