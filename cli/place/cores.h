/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <slurm/slurm.h>

#include "base/err.h"

/* slurm_load_job with all details; its parameters differ between releases. */
int cores_load(uint32_t id, job_info_msg_t **out);

/* CPUs of a node that jobs have, also jobs that this user may not see. */
unsigned cores_allocated(const node_info_t *node);

/*
 * Load a job's record from slurmctld, as any user may, and call `with` on it; the record is valid during the call. 0,
 * or -1 with an error that names the job.
 */
int cores_job(uint32_t id, int (*with)(void *data, const job_info_t *job, struct err *e), void *data, struct err *e);

/*
 * Call each for every host of a job, in the job's order, with the job's cores there ("0-5,12", abstract indices) and
 * the CPUs that the job has of each of them, until one fails. 0 or -1.
 */
int cores_each(const job_info_t *job,
	       int (*each)(void *data, const char *host, const char *cores, unsigned threads, struct err *e),
	       void *data, struct err *e);
