/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TOP_FEED_H
#define TOPIARY_CLI_WATCH_TOP_FEED_H

#include "base/err.h"

/*
 * The part of `topiary top JOB` that runs on each of the job's nodes, started by srun: what steps do there, from what
 * topiary-monitor leaves in RunDir (monitor/live.h), as lines on standard output, until the steps have ended. srun
 * passes on whole lines of less than 1,024 bytes (Slurm, MAX_MSG_LEN), whatever else nodes write meanwhile:
 *	NAME begin			what follows is a new trace
 *	NAME data BASE64		bytes of a trace (trace/chunk.h); a tick is a block
 *	NAME tick BASE64		the same, the last ones of a tick
 *	NAME end			the step has ended
 *	NAME none			no such step is here
 *	NAME error TEXT			a step is here, but is not recorded; why
 * Of each name `end`, `none` or `error` is the last line. top_gather.c reads them.
 */
#define FEED_LINE 1000u		/* bytes, at most */
#define FEED_HZ 10u		/* no more ticks a second */

/*
 * what: of each name the steps that may be shown, of which the first that is recorded is: "cn1=7.1,7.0/8=8.batch". An
 * empty name is the node's. 0, or -1 if `what` is not of this form.
 */
int feed_run(const char *run_dir, const char *what, struct err *e);

#endif
