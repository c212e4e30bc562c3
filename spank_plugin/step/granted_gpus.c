/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "granted_gpus.h"

#include <link.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <string.h>

#include "step.h"

struct gres {
	bool gpu, shares;	/* its plugins in this process */
};

static bool is_plugin(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');

	return base && !strcmp(base + 1, name);
}

static int plugin_see(struct dl_phdr_info *info, size_t size, void *user)
{
	struct gres *g = user;

	(void) size;
	g->gpu |= is_plugin(info->dlpi_name, "gres_gpu.so");
	g->shares |= is_plugin(info->dlpi_name, "gres_shard.so") || is_plugin(info->dlpi_name, "gres_mps.so");
	return 0;
}

/* The variable of a job is for its script and for salloc's shell. A GPU that is shared may be of other users, too. */
void granted_gpus(spank_t sp, char *out, size_t size)
{
	bool is_job = step.id == SLURM_BATCH_SCRIPT || step.id == SLURM_INTERACTIVE_STEP;
	struct gres loaded = {0};

	dl_iterate_phdr(plugin_see, &loaded);
	*out = '\0';
	if (!loaded.gpu || loaded.shares ||
	    spank_getenv(sp, is_job ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", out, size) ||
	    strspn(out, "0123456789,") != strlen(out))
		*out = '\0';
}
