/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/search.h"

#include <string.h>

int search_no_memory(struct search *x)
{
	return err_set(x->b.err, "mapping: out of memory");
}

/*
 * Keeps the cheapest trial; of equal ones that with the least loaded network adapter, then the first. So the result is
 * never worse than the first trials, block and cyclic.
 */
void search_measure(struct search *x, struct search_trial *t)
{
	unsigned *slot = x->best.slot;

	t->cost = slots_cost(x->b.m, x->b.s, t->slot);
	t->nic = slots_busiest(x->b.m, x->b.s, t->slot, x->load);
	if (x->best.name && (t->cost > x->best.cost || (t->cost == x->best.cost && t->nic >= x->best.nic)))
		return;
	memcpy(slot, t->slot, x->b.m->ranks * sizeof(*slot));
	x->best = *t;
	x->best.slot = slot;
}
