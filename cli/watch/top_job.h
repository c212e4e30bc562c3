/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"
#include "cmd.h"

/*
 * What `topiary top` shows of Slurm: a job, one of its steps, or a node with the user's jobs there. On the nodes
 * `topiary top --feed` reads what topiary-monitor leaves for the step's user (top_feed.c), started by srun as a step of
 * the job that overlaps all others, so that Slurm decides who may. What jobs there are is squeue's word, as a command:
 * libslurm ends the process where Slurm is not configured. For top.c.
 */
#define TOP_JOB_AGAIN 75	/* exit status of the child: there is something newer to show */

struct top_job {
	const struct cmd *cmd;
	const char *what;		/* of the command line */
	bool is_node;
	bool is_again;			/* something of it was shown before: that there is nothing now is no error */
	bool follows;			/* a job without a step: the newest step, until the job ends */
	char id[16], state[32];		/* of the job whose step the readers are */
	char step[32];			/* of `what`, "" if it has none */
	char name[64];			/* of the object for all */
	char *nodes;			/* as srun has it: those to look at */
	char *feed;			/* top_feed_run */
	unsigned expected;		/* names in it, on all nodes */
	uint32_t newest;		/* number of the job's newest step, plus 1 */
	bool silent;			/* slurmctld did not answer when it was asked last */
	bool newer;			/* something newer ended the readers */
};

/* Is this word a job or a step, "7", "7_3" or "7.0"? */
bool top_job_is_name(const char *what);
/* Is this word a node that Slurm knows? */
bool top_job_is_node(const char *what);

/* What is there to show now; with is_again a controller that does not answer is waited for. 0 or -1. */
int top_job_find(struct top_job *j, struct err *e);
void top_job_free(struct top_job *j);

/* In a child: write it as a live trace to the file until it ends. The exit status. */
int top_job_record(struct top_job *j, int fd, struct err *e);

/*
 * What steps do on several nodes, as top_feed.c sends it there, as one live trace: below one object for all of them the
 * nodes' trees side by side. A tick of it is what each node sent last, as a rate, because nodes are never exactly at
 * the same time; of a node that is silent it is absent.
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
int top_gather_run(const struct top_gather_request *r, enum top_gather_end *how, struct err *e);

/*
 * The part of `topiary top JOB` that runs on each of the job's nodes, started by srun: what steps do there, from what
 * topiary-monitor leaves in RunDir (monitor/live.h), as lines on standard output, until the steps have ended. srun
 * passes on whole lines of less than 1,024 bytes (Slurm, MAX_MSG_LEN), whatever else nodes write meanwhile:
 *	NAME begin			what follows is a new trace
 *	NAME data BASE64		bytes of a trace (trace/block.h); a tick is a block
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
int top_feed_run(const char *run_dir, const char *what, struct err *e);
