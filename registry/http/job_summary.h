/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_JOB_SUMMARY_H
#define TOPIARY_REGISTRY_HTTP_JOB_SUMMARY_H

#include "service.h"

/*
 * Summaries of jobs' traces (lib/trace/summary.h), signed by the job's user: JOB or JOB.STEP in the path, in c->node. A
 * row belongs to the user who signed it; other users neither replace nor read it, administrators read all. The registry
 * does not ask Slurm whose the job is: who lies fills rows of his own. Routes in route.c.
 */
#define JOB_SUMMARY_ZSTD_MAX 4096u	/* bytes of the body; SUMMARY_MAX of trace/summary.h, uncompressed */

int job_summary_admit(struct call *c);
void job_summary_put(struct call *c);

int job_summary_admit_read(struct call *c);
void read_job_summary(struct call *c);

#endif
