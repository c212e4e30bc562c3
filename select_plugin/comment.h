/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_COMMENT_H
#define TOPIARY_SELECT_COMMENT_H

#include "score/verdict.h"
#include "device.h"
#include "plan.h"

/*
 * The verdict (score/verdict.h) in the job's AdminComment or SystemComment, replacing the previous one; text by others
 * is kept. Slurm stores both with the job and shows them (scontrol show job), so Topiary writes no file; AdminComment
 * alone is sent to accounting when the job ends (jobacct_storage_p_job_complete() of accounting_storage/slurmdbd, 22.05
 * to 26.05). The verdict of a job that is about to start is written when it has started: comment_started.
 */

/* place: the value of TopoVerdicts. */
void comment_begin(const char *place);

/* The job was placed by this plan; its own record has the cores that it got. */
void comment_placed(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    const struct plan *p);

/*
 * The job was left to Slurm or has to wait; why is part of a sentence. s may be NULL. Written only when it differs from
 * the last.
 */
void comment_reason(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    enum verdict_outcome outcome, const char *reason);

/*
 * slurmctld has started the job, with its GPUs as far from its cores as d states. A verdict for another job, which it
 * did not start, is discarded. Returns whether its tasks were given cores of their own. comment_end: at unloading.
 */
bool comment_started(job_record_t *job, const struct device_distance *d);
void comment_end(void);

/*
 * Removes the verdict of a former run, or of another task of the array, from the comment of a job that is not running;
 * the verdict that it waits only if `waits`. Returns whether that verdict had given its tasks cores of their own.
 */
bool comment_clear(job_record_t *job, bool waits);

#endif
