/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_COMMENT_H
#define TOPIARY_SELECT_COMMENT_H

#include "score/verdict.h"
#include "plan.h"

/*
 * The verdict (score/verdict.h) in the job's SystemComment, replacing the previous one; what others wrote there stays.
 * Slurm keeps it with the job, shows it (scontrol show job) and hands it on to accounting: no file of ours is written.
 * What is said of a job that is to start is written once it has: comment_started.
 */

/* Placed: by this plan; the job's own record tells the cores that it got. */
void comment_placed(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    const struct plan *p);

/*
 * Left to Slurm, or made to wait: a part of a sentence. s may be NULL. Written anew only when it says something else.
 */
void comment_reason(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    enum outcome outcome, const char *reason);

/*
 * slurmctld has started the job; what was decided for another, which it did not start, is dropped. comment_end: at
 * unloading.
 */
void comment_started(job_record_t *job);
void comment_end(void);

/*
 * Take the verdict of a former run, or of another task of the array, out of the comment of a job that does not run; one
 * that it waits only with `waits`. Whether its tasks had been given cores of their own by that verdict.
 */
bool comment_clear(job_record_t *job, bool waits);

#endif
