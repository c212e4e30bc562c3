/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TOP_GATHER_H
#define TOPIARY_CLI_WATCH_TOP_GATHER_H

#include <stdbool.h>

#include "base/err.h"

/*
 * What steps do on several nodes, as top_feed.c sends it there, as one live trace: below one object for all of them the
 * nodes' trees side by side. A tick of it is what each node sent last, as a rate, because nodes are never exactly at
 * the same time; of a node that is silent it is absent. For top_job.c.
 */
struct top_gather_request {
	char *const *command;		/* srun with the readers: ends with NULL */
	unsigned expected;		/* names that will answer */
	const char *type, *name;	/* of the object for all: "Job", "job 7" */
	const char *of;			/* before the names that answer, where they are shown */
	int fd;				/* the trace: an empty file, which becomes this function's */
	/* Asked every few seconds; false: there is something newer to show, or nothing any more. */
	bool (*goes_on)(void *user);
	void *user;
};

enum top_gather_end { GATHER_ENDED, GATHER_LOST, GATHER_STOPPED, GATHER_FULL };

/*
 * Until all steps have ended (GATHER_ENDED), srun ended before (GATHER_LOST: with its words in e), goes_on says no or
 * SIGTERM or SIGINT arrives (GATHER_STOPPED), or the trace is too large (GATHER_FULL). What single nodes lack is
 * logged. 0 with a complete trace, or -1 if no node has anything to show, with the reason.
 */
int gather_run(const struct top_gather_request *r, enum top_gather_end *how, struct err *e);

#endif
