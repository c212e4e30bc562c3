/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SUBMITTED_H
#define TOPIARY_SELECT_SUBMITTED_H

#include "job_request.h"
#include "snapshot_watch.h"

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
