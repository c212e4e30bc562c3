/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "mapped.h"

#include <limits.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

#include "proxies.h"
#include "step.h"
#include "task.h"

bool mapped_take(spank_t sp)
{
	char given[PATH_MAX], map[PATH_MAX];

	if (proxies_take(sp))
		return true;
	if (step.id >= SLURM_MAX_NORMAL_STEP_ID || spank_getenv(sp, "SLURM_HOSTFILE", given, sizeof(given)) ||
	    spank_getenv(sp, "TOPIARY_HOSTFILE", map, sizeof(map)) || strcmp(given, map))
		return false;
	spank_unsetenv(sp, "SLURM_HOSTFILE");
	spank_unsetenv(sp, "SLURM_DISTRIBUTION");
	return true;
}

/* Too many places for one variable: the batch script's output has a line about that. */
static int find(struct task *t, struct err *e)
{
	char *places = malloc(MAPPED_PLACES);
	int rc;

	if (!places)
		return err_set(e, "out of memory");
	rc = spank_getenv(t->sp, "TOPIARY_PLACES", places, MAPPED_PLACES) ? 0 : mapped_fill(t, places, e);
	free(places);
	for (unsigned i = 0; rc < 0 && i < t->nlocal; i++)
		hwloc_bitmap_zero(t->masks[i]);
	return rc;
}

int task_mapped(struct task *t, struct err *e)
{
	int rc;

	if (proxies_are_here() && !step.user_binds) {
		proxies_tell(t);
		return 1;
	}
	if (!step.mapped || step.user_binds)
		return 0;
	rc = step.here ? find(t, e) : err_set(e, "the topology is another system's");
	t->moved |= rc > 0;
	return rc < 0 ? err_within(e, "the job's map is followed from node to node, and not on this one") : rc;
}
