/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/quotient.h"

#include <stdlib.h>
#include <string.h>

/* Edges while they are gathered, domain by domain, one for each pair. */
struct gathering {
	const struct matrix *m;
	const unsigned *slot;
	struct quotient *c;
	unsigned *on;			/* the rank on each slot, or SLOT_NONE */
	size_t *seen;			/* by domain: 1 + the arc to it; outside the current row: none */
	size_t end;
	unsigned *adj;
	double *weight;
};

static void rank_gather(struct gathering *g, unsigned rank, unsigned own)
{
	const struct matrix *m = g->m;

	for (size_t a = m->row[rank]; a < m->row[rank + 1]; a++) {
		unsigned other = g->c->domains->of[g->slot[m->adj[a]]];

		if (other == own)
			continue;
		if (g->seen[other] <= g->c->m.row[own]) {
			g->adj[g->end] = other;
			g->weight[g->end] = 0;
			g->seen[other] = ++g->end;
		}
		g->weight[g->seen[other] - 1] += m->weight[a];
	}
}

/* Each edge is also seen from its other end: appended in this order, the edges of each domain are sorted. */
static void arcs_sort(struct gathering *g)
{
	struct matrix *m = &g->c->m;

	for (unsigned k = 0; k < m->ranks; k++)
		g->seen[k] = m->row[k];
	for (unsigned k = 0; k < m->ranks; k++)
		for (size_t a = m->row[k]; a < m->row[k + 1]; a++) {
			size_t to = g->seen[g->adj[a]]++;

			m->adj[to] = k;
			m->weight[to] = g->weight[a];
		}
}

static void quotient_gather(struct gathering *g)
{
	const struct slot_level *t = g->c->domains;
	struct matrix *m = &g->c->m;

	memset(g->on, 0xff, t->first[t->n] * sizeof(*g->on));
	memset(g->seen, 0, m->ranks * sizeof(*g->seen));
	for (unsigned r = 0; r < g->m->ranks; r++)
		g->on[g->slot[r]] = r;
	for (unsigned k = 0; k < m->ranks; k++) {
		m->row[k] = g->end;
		for (unsigned i = t->first[k]; i < t->first[k + 1]; i++)
			if (g->on[i] != SLOT_NONE)
				rank_gather(g, g->on[i], k);
	}
	m->row[m->ranks] = g->end;
	arcs_sort(g);
}

static int matrix_fill(struct quotient *c, const struct matrix *m, const unsigned *slot)
{
	struct gathering g = { .m = m, .slot = slot, .c = c };
	size_t arcs = m->row[m->ranks] + 1, n = c->domains->n;
	int rc = -1;

	c->m = (struct matrix){ n, malloc((n + 1) * sizeof(size_t)), malloc(arcs * sizeof(unsigned)),
				malloc(arcs * sizeof(double)) };
	g.on = malloc(c->domains->first[n] * sizeof(*g.on));
	g.seen = malloc(n * sizeof(*g.seen));
	g.adj = malloc(arcs * sizeof(*g.adj));
	g.weight = malloc(arcs * sizeof(*g.weight));
	if (c->m.row && c->m.adj && c->m.weight && g.on && g.seen && g.adj && g.weight) {
		quotient_gather(&g);
		rc = 0;
	}
	free(g.on);
	free(g.seen);
	free(g.adj);
	free(g.weight);
	return rc;
}

/* The domains of a wider level, as ranges of these. */
static int level_fill(struct slot_level *to, const struct slot_level *wide, const struct slot_level *t)
{
	*to = *wide;
	to->first = malloc((wide->n + 1) * sizeof(*to->first));
	to->of = malloc(t->n * sizeof(*to->of));
	if (!to->first || !to->of)
		return -1;
	for (unsigned d = 0; d < wide->n; d++)
		to->first[d] = t->of[wide->first[d]];
	to->first[wide->n] = t->n;
	for (unsigned i = 0; i < t->n; i++)
		to->of[i] = wide->of[t->first[i]];
	return 0;
}

static int slots_fill(struct quotient *c, const struct slots *s, unsigned level)
{
	const struct slot_level *t = c->domains;

	c->s = (struct slots){ .n = t->n, .shape = t->shape, .costs = s->costs, .table = s->table, .rows = s->rows };
	c->s.spot = malloc(t->n * sizeof(*c->s.spot));
	if (!c->s.spot)
		return -1;
	for (unsigned i = 0; i < t->n; i++) {
		c->s.spot[i] = s->spot[t->first[i]];
		c->s.spot[i].slot = i;
	}
	for (; c->s.nlevels <= level; c->s.nlevels++)
		if (level_fill(&c->s.level[c->s.nlevels], &s->level[c->s.nlevels], t))
			return -1;
	c->s.cells = &c->s.level[level && s->level[level - 1].is_shaped ? level - 1 : level];
	return 0;
}

int quotient_init(struct quotient *c, const struct matrix *m, const struct slots *s, unsigned level,
		  const unsigned *slot)
{
	*c = (struct quotient){ .domains = &s->level[level] };
	c->slot = malloc(c->domains->n * sizeof(*c->slot));
	if (!c->slot || slots_fill(c, s, level) || matrix_fill(c, m, slot))
		return -1;
	for (unsigned i = 0; i < c->domains->n; i++)
		c->slot[i] = i;
	return 0;
}

void quotient_free(struct quotient *c)
{
	for (unsigned t = 0; t <= c->s.nlevels; t++) {
		free(c->s.level[t].first);
		free(c->s.level[t].of);
	}
	free(c->s.spot);
	free(c->m.row);
	free(c->m.adj);
	free(c->m.weight);
	free(c->slot);
}

void quotient_apply(const struct quotient *c, unsigned ranks, unsigned *slot)
{
	const struct slot_level *t = c->domains;

	for (unsigned r = 0; r < ranks; r++) {
		unsigned domain = t->of[slot[r]];

		slot[r] += t->first[c->slot[domain]] - t->first[domain];
	}
}
