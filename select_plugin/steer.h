/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_STEER_H
#define TOPIARY_SELECT_STEER_H

#include "base/err.h"
#include "slurm_glue.h"

/*
 * Read the settings and start to watch the snapshot, or do so again with new settings. A failure is logged, and all
 * jobs are then placed by Slurm alone.
 */
void steer_start(void);
void steer_stop(void);

/*
 * select_p_job_test of Slurm, before the inner plugin's. The inner one is asked first for the nodes, and there the
 * cores, that cut the least hardware. A job that prefers that, and cannot have it now, gets what the inner one gives it
 * when it is called exactly as we were; so does every job that we do not weigh. A job that requires it waits, is
 * planned for when it can have it, and is refused when that is never.
 */
int steer_job_test(job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,
		   uint32_t req_nodes, uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted,
		   slurm_exclusion_t *excluded WILL_RUN_PARM);

/* slurmctld has started a job, or it has ended, be it to run again. */
void steer_started(job_record_t *job);
void steer_ended(job_record_t *job);

/*
 * What job_submit_topiary.so asks (submitted.h): 0; 1 or -1, the job being accepted or refused, with a sentence for the
 * user.
 */
int topiary_submitted(const job_desc_msg_t *job, struct err *e);

#endif
