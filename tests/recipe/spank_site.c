/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Two SPANK plugins as sites have them, for tests/recipe and the rig: spank_project.so has options of its own, with an
 * argument, without one, and with one that may be left out; each task sees the first in SITE_PROJECT. spank_scratch.so
 * (-DSCRATCH) gives each task a mount namespace with an empty /var/tmp.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include <slurm/spank.h>

#ifdef SCRATCH
SPANK_PLUGIN(scratch, 1);

int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
	(void) spank, (void) argc, (void) argv;
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) ||
	    mount("scratch", "/var/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"))
		return ESPANK_ERROR;
	return ESPANK_SUCCESS;
}
#else
SPANK_PLUGIN(project, 1);

static char *project;

static int project_set(int value, const char *argument, int remote)
{
	(void) remote;
	if (!value)
		project = strdup(argument);
	return value || project ? ESPANK_SUCCESS : ESPANK_ERROR;
}

/* sbatch and salloc do not have the options of a table spank_options. */
int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	static struct spank_option options[] = {
		{"project", "NAME", "Project of the job", 1, 0, project_set},
		{"project-free", NULL, "Charge nobody", 0, 1, project_set},
		{"project-share", "[PERCENT]", "Charge a part", 2, 1, project_set},
	};
	int rc = ESPANK_SUCCESS;

	(void) argc, (void) argv;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options) && rc == ESPANK_SUCCESS; i++)
		rc = spank_option_register(spank, &options[i]);
	return rc;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	(void) argc, (void) argv;
	return spank_setenv(spank, "SITE_PROJECT", project ? project : "none", 1);
}
#endif
