/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_STEER_H
#define TOPIARY_SELECT_STEER_H

#include "slurm_glue.h"

/*
 * Read the settings and start to watch the snapshot, or do so again with new settings. A failure is logged, and all jobs are
 * then placed by Slurm alone.
 */
void steer_start(void);
void steer_stop(void);

/*
 * select_p_job_test of Slurm, before the inner plugin's: where the cores that a job needs are known, it is tried first on the
 * nodes, and there on the cores, that cut the least hardware. Where that fails, or is for later, or the job is one that we do
 * not weigh, the inner one is called exactly as we were.
 */
int steer_job_test(job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes,
		   uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted, slurm_exclusion_t *excluded WILL_RUN_PARM);

#endif
