/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_TOP_JOB_H
#define TOPIARY_CLI_WATCH_TOP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd.h"

/*
 * What `topiary top` shows of Slurm: a job, one of its steps, or a node with the user's jobs there. On the nodes
 * `topiary top --feed` reads what topiary-monitor leaves for the step's user (top_feed.h), started by srun as a step of
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
	char *feed;			/* top_feed.h */
	unsigned expected;		/* names in it, on all nodes */
	uint32_t newest;		/* number of the job's newest step, plus 1 */
};

/* Is this word a job or a step, "7", "7_3" or "7.0"? */
bool top_job_is_name(const char *what);
/* Is this word a node that Slurm knows? */
bool top_job_is_node(const char *what);

/* What is there to show now. 0 or -1. */
int top_job_find(struct top_job *j, struct err *e);
void top_job_free(struct top_job *j);

/* In a child: write it as a live trace to the file until it ends. The exit status. */
int top_job_record(struct top_job *j, int fd, struct err *e);

#endif
