/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/solve.h"

#include <stdlib.h>
#include <string.h>

struct blocks {
	const struct matrix *m;
	const struct places *p;
	enum mapping_effort effort;
	unsigned seed;
	unsigned *place, *block;	/* by rank: the result; the block mapping */
};

/* The places of one host, as those of a job on one host. */
static struct place *places_of(const struct places *p, unsigned first, unsigned n)
{
	struct place *own = malloc((n + 1) * sizeof(*own));

	if (own)
		memcpy(own, p->place + first, n * sizeof(*own));
	for (unsigned i = 0; own && i < n; i++)
		own[i].host = 0;
	return own;
}

/* Maps the ranks from `rank` on to the n places from `first` on. */
static int solve_host(const struct blocks *b, unsigned rank, unsigned ranks, unsigned first, unsigned n, struct err *e)
{
	struct matrix *m = matrix_range(b->m, rank, ranks);
	struct place *own = places_of(b->p, first, n);
	struct places p = *b->p;
	struct mapping found;
	int rc;

	p.hosts += b->p->place[first].host;
	p.nhosts = 1;
	p.place = own;
	p.nplaces = n;
	rc = m && own ? mapping_solve(m, &p, b->effort, b->seed, &found, e) : err_set(e, "mapping: out of memory");
	for (unsigned r = 0; !rc && r < ranks; r++) {
		b->place[rank + r] = first + found.place[r];
		b->block[rank + r] = first + r;
	}
	if (!rc)
		mapping_free(&found);
	matrix_free(m);
	free(own);
	return rc;
}

static int solve_hosts(const struct blocks *b, const unsigned *share, struct err *e)
{
	unsigned rank = 0, first = 0, end;

	for (unsigned h = 0; h < b->p->nhosts; h++, first = end) {
		for (end = first; end < b->p->nplaces && b->p->place[end].host == h; )
			end++;
		if (share[h] && solve_host(b, rank, share[h], first, end - first, e))
			return -1;
		rank += share[h];
	}
	return 0;
}

int mapping_blocks(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		   struct mapping *out, struct err *e)
{
	struct blocks b = { m, p, effort, seed, malloc(((size_t) m->ranks + 1) * sizeof(*b.place)),
			    malloc(((size_t) m->ranks + 1) * sizeof(*b.block)) };
	unsigned *share = NULL;
	int rc;

	if (p->nplaces < m->ranks)
		rc = err_set(e, "mapping: %u ranks, but the job has only %u places", m->ranks, p->nplaces);
	else if (!b.place || !b.block || !(share = places_share(p, m->ranks)))
		rc = err_set(e, "mapping: out of memory");
	else
		rc = solve_hosts(&b, share, e);
	if (!rc)
		*out = (struct mapping){ .ranks = m->ranks, .place = b.place, .cost = mapping_cost(m, p, b.place),
					 .block = mapping_cost(m, p, b.block) };
	else
		free(b.place);
	free(b.block);
	free(share);
	return rc;
}
