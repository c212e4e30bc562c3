/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/core_kinds.h"

#include <stdlib.h>

struct kind_list {
	struct core_kind_facts facts[CORE_KINDS_HWLOC];
	hwloc_bitmap_t pus[CORE_KINDS_HWLOC];
	unsigned char kinds[CORE_KINDS_HWLOC];
	unsigned n;
};

static void facts_read(hwloc_topology_t t, unsigned i, hwloc_bitmap_t pus, struct core_kind_facts *f)
{
	int efficiency = -1;
#if HWLOC_API_VERSION >= 0x00030000
	struct hwloc_infos_s *infos = NULL;

	if (hwloc_cpukinds_get_info(t, i, pus, &efficiency, &infos, 0))
		return;
	for (unsigned k = 0; infos && k < infos->count; k++)
		core_kind_read(f, infos->array[k].name, infos->array[k].value);
#else
	struct hwloc_info_s *infos = NULL;
	unsigned n = 0;

	if (hwloc_cpukinds_get_info(t, i, pus, &efficiency, &n, &infos, 0))
		return;
	for (unsigned k = 0; k < n; k++)
		core_kind_read(f, infos[k].name, infos[k].value);
#endif
	f->efficiency = efficiency;
}

/* Of a restricted topology kinds without PUs are gone. -1: memory is short, or a PU has no kind. */
static int list_read(hwloc_topology_t t, struct kind_list *l)
{
	hwloc_bitmap_t all = hwloc_bitmap_alloc();
	int n = hwloc_cpukinds_get_nr(t, 0), rc = all ? 0 : -1;

	for (int i = 0; !rc && i < n && i < (int) CORE_KINDS_HWLOC; i++) {
		if (!(l->pus[i] = hwloc_bitmap_alloc())) {
			rc = -1;
			break;
		}
		l->n++;
		l->facts[i].efficiency = -1;
		facts_read(t, i, l->pus[i], &l->facts[i]);
		hwloc_bitmap_or(all, all, l->pus[i]);
	}
	if (!rc && !hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(t), all))
		rc = -1;
	hwloc_bitmap_free(all);
	return rc;
}

static unsigned sets_make(const struct kind_list *l, unsigned kinds, hwloc_bitmap_t *sets)
{
	for (unsigned k = 0; k < kinds; k++) {
		if (!(sets[k] = hwloc_bitmap_alloc())) {
			while (k--)
				hwloc_bitmap_free(sets[k]);
			return 0;
		}
		for (unsigned i = 0; i < l->n; i++)
			if (l->kinds[i] == kinds - 1 - k)
				hwloc_bitmap_or(sets[k], sets[k], l->pus[i]);
	}
	return kinds;
}

unsigned bind_core_kinds(hwloc_topology_t t, hwloc_bitmap_t sets[static CORE_KINDS_MAX])
{
	struct kind_list *l = calloc(1, sizeof(*l));
	unsigned kinds = 0;

	if (!l)
		return 0;
	if (!list_read(t, l) && (kinds = core_kinds_rank(l->facts, l->n, l->kinds)) > 1)
		kinds = sets_make(l, kinds, sets);
	for (unsigned i = 0; i < l->n; i++)
		hwloc_bitmap_free(l->pus[i]);
	free(l);
	return kinds > 1 ? kinds : 0;
}
