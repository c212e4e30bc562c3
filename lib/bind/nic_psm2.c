/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic_psm2.h"

static bool is_active(const struct nic *n)
{
	return n->kind == NIC_PSM2 && n->active;
}

/* saved_hfis of the paper: their number, and the first. here: NULL for those of the whole node. */
static unsigned save_hfis(const struct nics *n, hwloc_const_bitmap_t here, int *first)
{
	unsigned saved = 0;

	*first = -1;
	for (unsigned i = 0; i < n->n; i++) {
		if (!is_active(&n->nic[i]) || (here && !hwloc_bitmap_intersects(n->nic[i].near, here)))
			continue;
		if (!saved++)
			*first = i;
	}
	return saved;
}

int psm2_unit(const struct nics *n, int hfival, hwloc_const_bitmap_t here, int pick)
{
	int first;

	if (hfival >= 0)
		return hfival;
	switch (save_hfis(n, NULL, &first)) {
	case 0:
		return -1;
	case 1:
		return 0;
	}
	return save_hfis(n, here, &first) == 1 ? n->nic[first].unit : n->nic[pick].unit;
}

int psm2_rails(const struct nics *n, int multirail, hwloc_const_bitmap_t here, hwloc_bitmap_t rails)
{
	hwloc_bitmap_zero(rails);
	for (unsigned i = 0; multirail && i < n->n; i++)
		if (is_active(&n->nic[i]) && (multirail == 1 || hwloc_bitmap_intersects(n->nic[i].near, here)))
			hwloc_bitmap_set(rails, i);
	return hwloc_bitmap_weight(rails);
}
