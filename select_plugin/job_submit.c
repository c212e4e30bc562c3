/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * job_submit_topiary.so (JobSubmitPlugins=topiary): the door by which a user is told why what he requires can never be had.
 * Without it such a job is refused too, in Slurm's own words. It knows nothing by itself: the select plugin is asked.
 */
#include "slurm_glue.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "steer.h"

#pragma GCC visibility push(default)

const char plugin_name[] = "Topiary: what a job requires of its place";
const char plugin_type[] = "job_submit/topiary";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init(void);
int fini(void);
int job_submit(job_desc_msg_t *job, uint32_t submitter, char **message);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter, char **message);
#else
int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter);
#endif

static void *beside;
static typeof(topiary_submitted) *submitted;

/* The one that slurmctld has loaded already, wherever on PluginDir it is; Slurm's own has no such function. */
static void find_beside(void)
{
	char path[PATH_MAX];

	for (const char *dir = slurm_conf.plugindir; dir && *dir && !submitted; dir += strcspn(dir, ":"), dir += *dir == ':') {
		snprintf(path, sizeof(path), "%.*s/select_cons_tres.so", (int) strcspn(dir, ":"), dir);
		if (!(beside = dlopen(path, RTLD_LAZY | RTLD_NOLOAD)))
			continue;
		if (!(submitted = (typeof(submitted)) dlsym(beside, "topiary_submitted")))
			dlclose(beside);
	}
}

int init(void)
{
	find_beside();
	if (!submitted)
		info("topiary: job_submit/topiary does nothing: no select_cons_tres.so of Topiary's is in use");
	return SLURM_SUCCESS;
}

int fini(void)
{
	if (submitted)
		dlclose(beside);
	submitted = NULL;
	return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t *job, uint32_t submitter, char **message)
{
	struct err e;

	(void) submitter;
	if (!submitted || !submitted(job, &e))
		return SLURM_SUCCESS;
	*message = xstrdup(e.text);
	return ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter, char **message)
{
	(void) message;
#else
int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter)
{
#endif
	(void) change;
	(void) job;
	(void) submitter;
	return SLURM_SUCCESS;
}

#pragma GCC visibility pop
