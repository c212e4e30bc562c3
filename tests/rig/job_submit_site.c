/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * job_submit_site.so: a site's own plugin that writes into a job's SystemComment, as burst buffer plugins do: what
 * `scontrol update AdminComment=` says is added to what stands there.
 */
#include "slurm_glue.h"

#pragma GCC visibility push(default)

const char plugin_name[] = "A site's own words in SystemComment";
const char plugin_type[] = "job_submit/site";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init(void);
int fini(void);
int job_submit(job_desc_msg_t *job, uint32_t submitter, char **message);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define MESSAGE_PARM , char **message __attribute__((unused))
#else
#define MESSAGE_PARM
#endif
int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter MESSAGE_PARM);

int init(void)
{
	return SLURM_SUCCESS;
}

int fini(void)
{
	return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t *job, uint32_t submitter, char **message)
{
	(void) job, (void) submitter, (void) message;
	return SLURM_SUCCESS;
}

int job_modify(job_desc_msg_t *change, job_record_t *job, uint32_t submitter MESSAGE_PARM)
{
	(void) submitter;
	if (change->admin_comment)
		xstrfmtcat(job->system_comment, "%s%s", job->system_comment ? " " : "", change->admin_comment);
	return SLURM_SUCCESS;
}

#pragma GCC visibility pop
