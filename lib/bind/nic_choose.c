/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic.h"

#include <limits.h>
#include <stdlib.h>

#include "bind/nic_reach.h"

static bool usable(const struct nic *n, enum nic_kind kind)
{
	return n->active && n->kind == kind;
}

static int choose_one(const struct reach *r, enum nic_kind kind, const unsigned *load, hwloc_const_bitmap_t pus)
{
	unsigned long least = ULONG_MAX;
	int best = -1;

	for (unsigned i = 0; i < r->nics->n; i++) {
		unsigned long far;

		if (!usable(&r->nics->nic[i], kind))
			continue;
		far = reach_distance(r, i, pus);
		if (best >= 0 && (far > least || (far == least && load[i] >= load[best])))
			continue;
		least = far;
		best = i;
	}
	return best;
}

int nics_choose(const struct nic_ask *a, enum nic_kind kind, int *chosen, struct err *e)
{
	unsigned *load = calloc(a->nics->n + 1, sizeof(*load));
	struct reach r;

	if (!load)
		return err_set(e, "out of memory");
	if (reach_find(a->topology, a->nics, &r, e)) {
		free(load);
		return -1;
	}
	for (unsigned i = 0; i < a->nlocal; i++) {
		chosen[i] = hwloc_bitmap_iszero(a->masks[i]) ? -1 : choose_one(&r, kind, load, a->masks[i]);
		if (chosen[i] >= 0)
			load[chosen[i]]++;
	}
	reach_free(&r);
	free(load);
	return 0;
}

static int add_equals(const struct nic_ask *a, enum nic_kind kind, unsigned chosen, hwloc_bitmap_t rails, struct err *e)
{
	struct reach r;
	unsigned long least;

	if (reach_find(a->topology, a->nics, &r, e))
		return -1;
	least = reach_distance(&r, chosen, a->masks[a->local]);
	for (unsigned i = 0; i < a->nics->n; i++)
		if (usable(&a->nics->nic[i], kind) && reach_distance(&r, i, a->masks[a->local]) == least)
			hwloc_bitmap_set(rails, i);
	reach_free(&r);
	return 0;
}

int nics_rails(const struct nic_ask *a, enum nic_kind kind, const int *chosen, hwloc_bitmap_t rails, struct err *e)
{
	hwloc_bitmap_zero(rails);
	if (chosen[a->local] < 0)
		return 0;
	hwloc_bitmap_set(rails, chosen[a->local]);
	if (a->request->nic == NIC_LOCAL)
		return add_equals(a, kind, chosen[a->local], rails, e);
	for (unsigned i = 0; a->request->nic == NIC_ALL && i < a->nics->n; i++)
		if (usable(&a->nics->nic[i], kind))
			hwloc_bitmap_set(rails, i);
	return 0;
}
