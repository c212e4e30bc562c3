/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_CORES_H
#define TOPIARY_REGISTRY_CMD_CORES_H

#include <slurm/slurm.h>

#include "base/err.h"

/* As slurm_load_job with all details; its parameters are not the same in each release. */
int cores_load(uint32_t id, job_info_msg_t **out);

/*
 * Call each for every host of a job, in the job's order, with the cores that the job has there ("0-5,12", abstract indices), until
 * one fails. 0 or -1.
 */
int cores_each(const job_info_t *job, int (*each)(void *data, const char *host, const char *cores, struct err *e), void *data,
	       struct err *e);

#endif
