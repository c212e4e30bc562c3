/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/domain_costs.h"

#include <stdlib.h>

/* The largest table, 2 MiB: beyond this, updates from memory are too slow. */
#define MOST (1u << 18)

bool domain_costs_is_worth(const struct matrix *m, const struct slot_level *cells)
{
	return (size_t) m->ranks * cells->n <= MOST;
}

static void between_fill(struct domain_costs *t, const struct slots *s, const unsigned *first)
{
	for (unsigned a = 0; a < t->cells; a++)
		for (unsigned b = 0; b < t->cells; b++) {
			unsigned to = a == b && first[a + 1] - first[a] > 1 ? first[a] + 1 : first[b];

			t->between[(size_t) a * t->cells + b] = slots_distance(s, first[a], to);
		}
}

static void row_add(double *restrict row, const double *restrict more, double weight, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		row[i] += weight * more[i];
}

int domain_costs_init(struct domain_costs *t, const struct matrix *m, const struct slots *s,
		      const struct slot_level *cells, const unsigned *slot)
{
	*t = (struct domain_costs){ .cells = cells->n, .cell = cells->of };
	t->between = malloc((size_t) t->cells * t->cells * sizeof(*t->between));
	t->change = malloc(t->cells * sizeof(*t->change));
	t->pays = calloc((size_t) m->ranks * t->cells, sizeof(*t->pays));
	if (!t->between || !t->pays || !t->change)
		return -1;
	between_fill(t, s, cells->first);
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			row_add(&t->pays[(size_t) r * t->cells],
				&t->between[(size_t) t->cell[slot[m->adj[i]]] * t->cells], m->weight[i], t->cells);
	return 0;
}

void domain_costs_free(struct domain_costs *t)
{
	free(t->between);
	free(t->change);
	free(t->pays);
}

void domain_costs_move(struct domain_costs *t, const struct matrix *m, unsigned rank, unsigned from, unsigned to)
{
	const double *old = &t->between[(size_t) t->cell[from] * t->cells],
		     *new = &t->between[(size_t) t->cell[to] * t->cells];

	for (unsigned c = 0; c < t->cells; c++)
		t->change[c] = new[c] - old[c];
	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		row_add(&t->pays[(size_t) m->adj[i] * t->cells], t->change, m->weight[i], t->cells);
}
