/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/engine/scotch.h"
#include "map/engine/split_parts.h"

/* Scotch's partition while its sizes are corrected. */
struct balance {
	const struct split *x;
	struct split_cut *c;
	unsigned *have;		/* ranks of each part */
	double *talk;		/* of one rank with each part */
};

/* Partitions with Scotch, using only parts that are to have ranks. */
static int ask_scotch(struct split *x, struct split_cut *c, unsigned *seen)
{
	struct matrix_ranks some = { c->rank, x->local, c->n };
	unsigned *size = seen + c->parts, n = 0;

	for (unsigned p = 0; p < c->parts; p++)
		if (c->size[p]) {
			seen[n] = p;
			size[n++] = c->size[p];
		}
	if (n > 1 && scotch_split(x->m, &some, n, size, x->seed, c->part, x->err))
		return -1;
	for (unsigned i = 0; i < c->n; i++)
		c->part[i] = seen[n > 1 ? c->part[i] : 0];
	return 0;
}

static void talk_fill(struct balance *b, unsigned i)
{
	const struct matrix *m = b->x->m;
	unsigned rank = b->c->rank[i];

	memset(b->talk, 0, b->c->parts * sizeof(*b->talk));
	for (size_t a = m->row[rank]; a < m->row[rank + 1]; a++)
		if (b->x->local[m->adj[a]] != SLOT_NONE)
			b->talk[b->c->part[b->x->local[m->adj[a]]]] += m->weight[a];
}

/* From a part with too many ranks, moves the one that loses least to a part with room. */
static void move_cheapest(struct balance *b)
{
	struct split_cut *c = b->c;
	unsigned rank = 0, to = c->parts;
	double least = 0;

	for (unsigned i = 0; i < c->n; i++) {
		if (b->have[c->part[i]] <= c->size[c->part[i]])
			continue;
		talk_fill(b, i);
		for (unsigned p = 0; p < c->parts; p++) {
			double loss = b->talk[c->part[i]] - b->talk[p];

			if (b->have[p] < c->size[p] && (to == c->parts || loss < least)) {
				rank = i;
				to = p;
				least = loss;
			}
		}
	}
	b->have[c->part[rank]]--;
	b->have[to]++;
	c->part[rank] = to;
}

static void parts_rebalance(struct balance *b)
{
	struct split_cut *c = b->c;
	unsigned over = 0;

	for (unsigned i = 0; i < c->n; i++)
		b->have[c->part[i]]++;
	for (unsigned p = 0; p < c->parts; p++)
		over += b->have[p] > c->size[p] ? b->have[p] - c->size[p] : 0;
	for (; over; over--)
		move_cheapest(b);
}

int split_by_scotch(struct split *x, struct split_cut *c)
{
	struct balance b = { x, c, calloc(c->parts, sizeof(*b.have)), malloc(c->parts * sizeof(*b.talk)) };
	unsigned *seen = malloc(2 * (size_t) c->parts * sizeof(*seen));
	int rc;

	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = i;
	rc = b.have && b.talk && seen ? ask_scotch(x, c, seen) : split_no_memory(x);
	if (rc == 0)
		parts_rebalance(&b);
	for (unsigned i = 0; i < c->n; i++)
		x->local[c->rank[i]] = SLOT_NONE;
	free(b.have);
	free(b.talk);
	free(seen);
	return rc;
}
