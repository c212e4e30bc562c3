/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SUBMITTED_H
#define TOPIARY_SELECT_SUBMITTED_H

#include "job_request.h"
#include "snapshot_watch.h"

/*
 * Whether what is being submitted can ever have what it requires: 0; 1 with a sentence for the user when what he asks
 * has no effect here; or -1 with one, when it is to be refused. Only reads what the locks of Slurm's job_submit plugins
 * protect, so that several may be looked at side by side; v may be NULL: then only its words are looked at.
 */
int submitted_check(const job_desc_msg_t *job, const struct request *site, struct snapshot_view *v, struct err *e);

/* 1 with a sentence that ends with the reason when the job asks for a place; else 0. */
int submitted_ignored(const job_desc_msg_t *job, const char *why, struct err *e);

#endif
