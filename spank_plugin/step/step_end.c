/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step_end.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/printable.h"
#include "options.h"
#include "step.h"

#define SECONDS 10		/* of a command: Slurm drains a node whose steps do not end */
#define MAX_OUTPUT 4096

struct command {
	const char *words[5];	/* after "topiary", the last NULL */
	bool is_root;
};

static int command_child(int fd, void *arg)
{
	const struct command *c = arg;
	const char *argv[12] = { "topiary" };
	char slurm[PATH_MAX + 16], topiary[PATH_MAX + 16];
	char *env[5] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8" };
	int null = open("/dev/null", O_RDWR), n = 1, vars = 2;

	if (c->is_root && (user_become(&step.user) || user_confine(&step.user, NULL))) {
		dprintf(fd, "dropping root's rights: %s", strerror(errno));
		return 1;
	}
	for (int i = 0; c->words[i]; i++)
		argv[n++] = c->words[i];
	if (step.config) {
		argv[n++] = "--config";
		argv[n++] = step.config;
	}
	if (getenv("SLURM_CONF") && snprintf(slurm, sizeof(slurm), "SLURM_CONF=%s", getenv("SLURM_CONF")) > 0)
		env[vars++] = slurm;
	if (getenv("TOPIARY_CONF") && snprintf(topiary, sizeof(topiary), "TOPIARY_CONF=%s", getenv("TOPIARY_CONF")) > 0)
		env[vars++] = topiary;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return 1;
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execve(step.settings.topiary_command, (char **) argv, env);
	dprintf(STDOUT_FILENO, "%s: %s", step.settings.topiary_command, strerror(errno));
	return 1;
}

/* Its output, without the last newline, or its error. 0 or -1. */
static int command_run(struct command *c, struct buf *out, struct err *e)
{
	int rc = child_run(command_child, c, SECONDS, MAX_OUTPUT, out, e);

	while (out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = '\0';
	if (rc > 0)
		err_set(e, "%s", out->len ? out->data : "topiary failed without a message");
	return rc ? -1 : 0;
}

void step_end_run(const char *name, const char *folder, const struct monitor_request *r, bool is_root, bool is_asked)
{
	struct command c = { { "advise", "--brief", folder }, is_root };
	struct buf out = {0};
	struct err e;

	if (!r->advise)
		return;
	if (command_run(&c, &out, &e)) {
		err_within(&e, "step %s: no advice", name);
		/* A site's default is not worth a line in each job's output. */
		if (is_asked)
			slurm_spank_log("topiary: %s", printable(e.text));
		else
			slurm_debug("topiary: %s", printable(e.text));
	} else if (out.len) {
		slurm_spank_log("topiary: %s", printable(out.data));
	}
	buf_free(&out);
}

/* --- srun --- */

enum { MAX_COMPONENTS = 128 };	/* MAX_HET_JOB_COMPS of Slurm */

static uint32_t srun_job, srun_id = NO_VAL;

/* Of a step with several components, the job of any one: srun calls this once. */
int step_end_note(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	if (spank_get_item(sp, S_JOB_ID, &srun_job) || spank_get_item(sp, S_JOB_STEPID, &srun_id))
		srun_id = NO_VAL;
	return 0;
}

/* The user's request, or the site's. */
static int request_find(struct monitor_request *out)
{
	*out = options.monitor;
	return options_set_by_user("topo-monitor") ? 0 :
		monitor_request_parse("TopoMonitor", step.settings.topo_monitor, out, NULL);
}

static void component_end(unsigned long job, const struct monitor_request *r)
{
	char name[32], folder[PATH_MAX];

	snprintf(name, sizeof(name), "%lu.%u", job, srun_id);
	snprintf(folder, sizeof(folder), "%s/topiary-%s", getenv("SLURM_SUBMIT_DIR"), name);
	/* Where nothing was recorded, the nodes have said why; or the component has no part in the step. */
	if (!access(folder, F_OK))
		step_end_run(name, folder, r, false, options_set_by_user("topo-monitor"));
}

/*
 * Each component of a heterogeneous job is a job with a folder of its own; no two of its steps have one number. Slurm
 * names them by HET_GROUP, too, but not where srun itself made the allocation.
 */
int step_end_srun(spank_t sp, int argc, char **argv)
{
	struct monitor_request r;
	char variable[48];

	(void) sp;
	if (srun_id == NO_VAL || !getenv("SLURM_SUBMIT_DIR") || step_configure(argc, argv, NULL) || request_find(&r) ||
	    !r.hz)
		return 0;
	component_end(srun_job, &r);
	for (unsigned i = 0; i < MAX_COMPONENTS; i++) {
		const char *job;

		snprintf(variable, sizeof(variable), "SLURM_JOB_ID_PACK_GROUP_%u", i);
		if (!(job = getenv(variable)))
			break;
		if (strtoul(job, NULL, 10) != srun_job)
			component_end(strtoul(job, NULL, 10), &r);
	}
	return 0;
}
