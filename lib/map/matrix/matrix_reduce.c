/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "map/matrix/matrix_parts.h"

struct matrix *matrix_some(const struct matrix *m, const struct matrix_ranks *some, unsigned silent)
{
	struct matrix *part;
	size_t arcs = 0;

	for (unsigned r = 0; r < some->n; r++)
		arcs += m->row[some->rank[r] + 1] - m->row[some->rank[r]];
	if (!(part = matrix_new(some->n + silent, arcs)))
		return NULL;
	arcs = 0;
	for (unsigned r = 0; r < some->n; r++) {
		for (size_t i = m->row[some->rank[r]]; i < m->row[some->rank[r] + 1]; i++) {
			if (some->local[m->adj[i]] >= some->n)
				continue;
			part->adj[arcs] = some->local[m->adj[i]];
			part->weight[arcs++] = m->weight[i];
		}
		part->row[r + 1] = arcs;
	}
	for (unsigned r = 0; r < silent; r++)
		part->row[some->n + r + 1] = arcs;
	return part;
}

struct matrix *matrix_range(const struct matrix *m, unsigned first, unsigned n)
{
	unsigned *rank = malloc((2 * (size_t) m->ranks + 1) * sizeof(*rank));
	struct matrix *part = NULL;

	for (unsigned r = 0; rank && r < m->ranks; r++) {
		rank[r] = first + r;
		rank[m->ranks + r] = r - first;
	}
	if (rank)
		part = matrix_some(m, &(struct matrix_ranks){ rank, rank + m->ranks, n }, 0);
	free(rank);
	return part;
}

struct matrix *matrix_contract(const struct matrix *m, const unsigned *group, unsigned groups)
{
	struct matrix_entries f = { malloc((m->row[m->ranks] / 2 + 1) * sizeof(*f.entry)), 0 };
	struct matrix *contracted = NULL;

	for (unsigned r = 0; f.entry && r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			if (group[r] < group[m->adj[i]])
				f.entry[f.n++] = (struct matrix_entry){ group[r], group[m->adj[i]], m->weight[i] };
	if (f.entry)
		contracted = matrix_build(groups, &f);
	free(f.entry);
	return contracted;
}
