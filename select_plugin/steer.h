/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_STEER_H
#define TOPIARY_SELECT_STEER_H

#include "base/err.h"
#include "job_request.h"
#include "slurm_glue.h"
#include "snapshot_watch.h"

/*
 * Reads the settings and starts to watch the snapshot, or restarts with new settings. A failure is logged; all jobs are
 * then placed by Slurm alone.
 */
void steer_start(void);
void steer_stop(void);

/*
 * Slurm's select_p_job_test, called before the wrapped plugin's. The wrapped plugin is asked first for the nodes, and
 * there the cores, with the lowest cost. A job that prefers such a placement and cannot have it now gets what the
 * wrapped plugin returns for the original call; so does every job that Topiary does not weigh. A job that requires it
 * waits, is planned for when it is available, and is refused when that is never.
 */
int steer_job_test(slurm_job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,
		   uint32_t req_nodes, uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted,
		   slurm_exclusion_t *excluded WILL_RUN_PARM);

/*
 * slurmctld starts a job, before and after the wrapped plugin allocates its cores; or the job has ended, possibly to
 * run again.
 */
void steer_starting(job_record_t *job);
void steer_started(job_record_t *job);
void steer_ended(job_record_t *job);

/*
 * Called by job_submit_topiary.so (job_submit.c). Returns 0; or 1 or -1, the job being accepted or refused, with a
 * sentence for the user; or SUBMITTED_INACTIVE, with a sentence or "": nothing of Topiary applies to the job here.
 */
#define SUBMITTED_INACTIVE 2
int topiary_submitted(const job_desc_msg_t *job, struct err *e);

/*
 * Checks at submission whether a requirement can ever be met. Returns 0; 1 with a sentence for the user when an option
 * has no effect here; or -1 with one when the job is to be refused. Only reads what the locks of Slurm's job_submit
 * plugins protect, so that several submissions may be checked at once. v may be NULL: then only the options are
 * checked.
 */
int submitted_check(const job_desc_msg_t *job, const struct request *site, struct snapshot_view *v, struct err *e);

/* Returns 1 with a sentence that ends with the reason when the job requests a placement; else 0. */
int submitted_ignored(const job_desc_msg_t *job, const char *why, struct err *e);

#endif
