/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/domain_anneal.h"

#include <stdbool.h>

#include "map/engine/anneal.h"
#include "map/engine/quotient.h"

/*
 * The number of levels that are annealed, their least number of domains, and the least average number of slots in each.
 */
#define STRATA 3
#define LEAST_DOMAINS 4
#define LEAST_SLOTS 3
/* The first temperature (anneal.h): high, so that much is rearranged. */
#define WARM 0.5

static bool is_worth(const struct slot_level *t)
{
	return t->is_shaped && t->n >= LEAST_DOMAINS && t->first[t->n] >= LEAST_SLOTS * t->n;
}

static int domains_anneal(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed,
			  unsigned long long work, unsigned *slot)
{
	struct quotient c;
	int rc = quotient_init(&c, m, s, level, slot) || anneal_slots(&c.m, &c.s, seed, WARM, work, c.slot) ? -1 : 0;

	if (rc == 0)
		quotient_apply(&c, m->ranks, slot);
	quotient_free(&c);
	return rc;
}

int domain_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot)
{
	unsigned worth = 0;
	int rc = 0;

	for (unsigned t = 0; t < s->nlevels; t++)
		worth += is_worth(&s->level[t]);
	if (worth > STRATA)
		worth = STRATA;
	for (unsigned t = s->nlevels, done = 0; t-- && done < worth && rc == 0;)
		if (is_worth(&s->level[t])) {
			rc = domains_anneal(m, s, t, seed + done, work / worth, slot);
			done++;
		}
	return rc;
}
