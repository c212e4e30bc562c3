/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * job_submit_topiary.so (JobSubmitPlugins=topiary): the door by which a user is told why what he requires can never be
 * had. Without it such a job is refused too, in Slurm's own words. It knows nothing by itself: the select plugin is
 * asked.
 */
#include "slurm_glue.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "score/request.h"
#include "steer.h"

#pragma GCC visibility push(default)

const char plugin_name[] = "Topiary: checks placement requirements";
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

static void *select_plugin;
static typeof(topiary_submitted) *submitted;

/* The one that slurmctld has loaded already, wherever on PluginDir it is; Slurm's own does not export this function. */
static void find_select_plugin(void)
{
	char path[PATH_MAX];

	for (const char *dir = slurm_conf.plugindir; dir && *dir && !submitted; dir += strcspn(dir, ":"),
	     dir += *dir == ':') {
		snprintf(path, sizeof(path), "%.*s/select_cons_tres.so", (int) strcspn(dir, ":"), dir);
		if (!(select_plugin = dlopen(path, RTLD_LAZY | RTLD_NOLOAD)))
			continue;
		if (!(submitted = (typeof(submitted)) dlsym(select_plugin, "topiary_submitted")))
			dlclose(select_plugin);
	}
}

int init(void)
{
	find_select_plugin();
	if (!submitted)
		info("topiary: job_submit/topiary has no effect: Topiary's select_cons_tres.so is not in use");
	return SLURM_SUCCESS;
}

int fini(void)
{
	if (submitted)
		dlclose(select_plugin);
	submitted = NULL;
	return SLURM_SUCCESS;
}

/* A variable of the job's SPANK control environment, or NULL. */
static const char *control_variable(const job_desc_msg_t *job, const char *name)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < job->spank_job_env_size; i++)
		if (!strncmp(job->spank_job_env[i], name, len) && job->spank_job_env[i][len] == '=')
			return job->spank_job_env[i] + len + 1;
	return NULL;
}

#define OPTION(name) "_SLURM_SPANK_OPTION_topiary_" name

/* Whether the job has options for a placement: all that can be known without the select plugin. */
static bool asks_placement(const job_desc_msg_t *job)
{
	return control_variable(job, OPTION("topo_fit")) || control_variable(job, OPTION("topo_request")) ||
	       control_variable(job, OPTION("topo_mem"));
}

/*
 * A matrix of fewer ranks than the job has tasks cannot be used; an error at submission is better than one after the
 * wait.
 */
static int check_matrix(const job_desc_msg_t *job, struct err *e)
{
	const char *path = control_variable(job, OPTION("topo_matrix")),
		   *ranks = control_variable(job, REQUEST_MATRIX_RANKS);
	unsigned long n = ranks ? strtoul(ranks, NULL, 10) : 0;

	if (!path || !n || job->num_tasks == NO_VAL || n >= job->num_tasks)
		return 0;
	return err_set(e, "--topo-matrix=%.200s: the matrix has %lu rank%s, but the job has %u tasks", path,
		       n, PLURAL(n), job->num_tasks);
}

int job_submit(job_desc_msg_t *job, uint32_t submitter, char **message)
{
	struct err e, of_matrix;
	int rc = submitted ? submitted(job, &e) : 0;

	(void) submitter;
	if (!submitted && asks_placement(job))
		*message = xstrdup("--topo-fit, --topo-request and --topo-mem have no effect: Topiary's select plugin"
				    " is not in use here");
	if (rc != SUBMITTED_INACTIVE && check_matrix(job, &of_matrix)) {
		rc = -1;
		e = of_matrix;
	}
	if (rc && *e.text)
		*message = xstrdup(e.text);
	return rc < 0 ? ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE : SLURM_SUCCESS;
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
