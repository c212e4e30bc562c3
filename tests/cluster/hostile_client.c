/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * A SPANK plugin that a user has his own slurm.conf load in place of ours: it takes the same options, and looks at none
 * of them.
 */
#include <slurm/spank.h>

SPANK_PLUGIN(topiary, 1)

static int take(int which, const char *value, int remote)
{
	(void) which, (void) value, (void) remote;
	return 0;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	static char *const names[] = { "topo-fit", "topo-level", "topo-request", "topo-matrix", "topo-capture",
				       "topo-order", "topo-place",
		"topo-membind", "topo-omp", "topo-hugepages", "topo-nic", "topo-report", "topo-hwloc" };

	(void) argc, (void) argv;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct spank_option o = { names[i], "ANY", "", 1, (int) i, take };

		spank_option_register(sp, &o);
	}
	return 0;
}
