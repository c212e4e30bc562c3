/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "score/request.h"

/* A past job as recorded. Times in milliseconds since an arbitrary time. */
struct past_job {
	char *name;
	long long submit;
	long long run;		/* its run time */
	long long limit;	/* its time limit, 0: unknown */
	unsigned nodes, tasks, task_cpus;	/* tasks on all nodes together, distributed as evenly as possible */
	unsigned long long memory;	/* MB on each node; 0: unknown, or none */
	unsigned gpus;		/* on each node */
	bool asks, asks_memory;	/* it had a request of its own; --topo-mem was in it */
	struct request request;	/* that request; its memory only if asks_memory, the rest only if asks */
};

struct jobs {
	struct past_job *list;
	size_t n;
	size_t skipped;		/* never ran, or still running */
	size_t unreadable;	/* rows of sacct with too few values: a line break in a comment */
	size_t elsewhere;	/* ran on a node that the cluster does not have, and were left out */
};

/* Whether the cluster has a node of this name. NULL in jobs_read: not checked. */
struct jobs_nodes {
	bool (*known)(const void *user, const char *name);
	const void *user;
	unsigned cpus;		/* of its largest node */
	bool leave_out;		/* jobs on other nodes; otherwise they are an error */
};

/*
 * Appends the jobs of a record, text[len], in the order of its lines. The first line may name the columns, separated by
 * '|' (the output of `sacct --parsable2`) or by blanks and tabs; without such a line they are
 *	job submit start end nodes tasks cpus_per_task fit level
 * Names of columns are case-insensitive; columns other than these are ignored:
 *	job, JobID, JobIDRaw		a name with a '.' in it is a step's and ignored
 *	submit, start, end		seconds, as digits and a fraction, or YYYY-MM-DDTHH:MM:SS in local time
 *	nodes, NNodes, AllocNodes
 *	tasks, NTasks; cpus_per_task
 *	AllocCPUS, NCPUS, ReqCPUS	total; without tasks, each CPU is a task; the first with a number counts
 *	limit, Timelimit, TimelimitRaw	seconds; [[DAYS-]HH:]MM:SS or DAYS-HH; minutes
 *	memory, ReqMem			MB on each node; of the whole job, with n on each node, with c for each CPU
 *					(before Slurm 21.08); a unit K, M, G, T or P may follow the number
 *	gpus, AllocTRES, ReqTRES	on each node; gres/gpu= of the whole job, or the sum of gres/gpu:TYPE=
 *	fit, level			as for --topo-fit and --topo-level, "-" for none
 *	Comment				the same options in it
 *	NodeList			names that the cluster must have
 * Without names and '|', lines of 18 values or more are Feitelson's Standard Workload Format (swf), with comments after
 * ';' and -1 for unknown: of it the job, submit time, run time, processors and time limit count. A job is on as few of
 * the cluster's largest nodes as have its processors, or on as many nodes as a 19th value lists, if these are more:
 * "{NODE,NODE,...}", the node of each allocated processor, those of one node together, as in MetaCentrum's traces.
 * A job without a start or an end, without nodes (refused at submission, or cancelled while it waited), or that ended
 * before it started, is counted as skipped. A comment that is no valid request is no request, as in slurmctld.
 * Blank lines and those that begin with '#' are ignored. name is for errors, which state the line. 0, or -1 with jobs
 * untouched.
 */
int jobs_read(struct jobs *jobs, const char *text, size_t len, const char *name, const struct jobs_nodes *nodes,
	      struct err *e);
void jobs_free(struct jobs *jobs);

/* By time of submission, stable. 0, or -1 when memory is short. */
int jobs_sort(struct jobs *jobs);

/* Keeps the first n. */
void jobs_cut(struct jobs *jobs, size_t n);
