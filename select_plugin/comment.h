/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_COMMENT_H
#define TOPIARY_SELECT_COMMENT_H

#include "fit/verdict.h"
#include "plan.h"

/*
 * The verdict (fit/verdict.h) in the job's SystemComment, in the place of the one before; what others wrote there stays. Slurm keeps it
 * with the job, shows it (scontrol show job) and hands it on to accounting: no file of ours is written.
 */

/* Placed: by this plan; the job's own record tells the cores that it got. */
void comment_placed(job_record_t *job, const struct ask *ask, const struct seats *s, const struct plan *p);

/* Left to Slurm, or made to wait: a part of a sentence. s may be NULL. Written anew only when it says something else. */
void comment_reason(job_record_t *job, const struct ask *ask, const struct seats *s, enum outcome outcome, const char *reason);

#endif
