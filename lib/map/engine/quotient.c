/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/quotient.h"

#include <stdlib.h>

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
	unsigned *domain = malloc((m->ranks + 1) * sizeof(*domain));

	*c = (struct quotient){ .domains = &s->level[level] };
	for (unsigned r = 0; domain && r < m->ranks; r++)
		domain[r] = c->domains->of[slot[r]];
	if (domain)
		c->m = matrix_contract(m, domain, c->domains->n);
	free(domain);
	if (!c->m || slots_fill(c, s, level) || !(c->slot = malloc(c->domains->n * sizeof(*c->slot))))
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
	matrix_free(c->m);
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
