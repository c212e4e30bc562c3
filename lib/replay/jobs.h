/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_JOBS_H
#define TOPIARY_REPLAY_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "score/request.h"

/* A job that ran once, as a record tells it. Times in milliseconds since some beginning. */
struct past_job {
	char *name;
	long long submit;
	long long run;		/* how long it ran */
	long long limit;	/* how long it was allowed to, 0: not known */
	unsigned nodes, tasks, task_cpus;	/* tasks on all nodes together, as evenly as can be */
	bool asks;		/* it had words of its own */
	struct request request;	/* these; only when it asks */
};

struct jobs {
	struct past_job *list;
	size_t n, cap;
	size_t skipped;		/* never started, or still running */
};

/* Does the cluster have a node of this name? NULL in jobs_read: none is asked for. */
struct jobs_nodes {
	bool (*known)(const void *user, const char *name);
	const void *user;
};

/*
 * Append the jobs of a record, text[len], in the order of its lines. The first line may name the columns, set apart by
 * '|' (what `sacct --parsable2` prints) or by blanks and tabs; without such a line they are
 *	job submit start end nodes tasks cpus_per_task fit level
 * Names of columns count in any case, and those that say nothing here are read over:
 *	job, JobID, JobIDRaw		a name with a '.' in it is a step's, and is read over
 *	submit, start, end		seconds, as digits and a fraction, or YYYY-MM-DDTHH:MM:SS in local time
 *	nodes, NNodes, AllocNodes
 *	tasks, NTasks; cpus_per_task
 *	AllocCPUS, NCPUS, ReqCPUS	total; without tasks, each CPU is a task; the first with a number counts
 *	limit, Timelimit, TimelimitRaw	seconds; [[DAYS-]HH:]MM:SS or DAYS-HH; minutes
 *	fit, level			as --topo-fit and --topo-level have them, "-" for none
 *	Comment				the same words in it
 *	NodeList			names that the cluster must have
 * Blank lines and those that begin with '#' are read over. name is for errors, which give the line. 0, or -1 with jobs
 * untouched.
 */
int jobs_read(struct jobs *jobs, const char *text, size_t len, const char *name, const struct jobs_nodes *nodes,
	      struct err *e);
void jobs_free(struct jobs *jobs);

/* By time of submission; those of one time stay as they are. 0, or -1 when memory is short. */
int jobs_sort(struct jobs *jobs);

/* Keep the first n. */
void jobs_cut(struct jobs *jobs, size_t n);

#endif
