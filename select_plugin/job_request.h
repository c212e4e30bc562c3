/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_JOB_REQUEST_H
#define TOPIARY_SELECT_JOB_REQUEST_H

#include "base/settings.h"
#include "score/chooser.h"
#include "slurm_glue.h"

/* A job's request, in the terms of the choice of nodes and cores. */
struct job_request {
	struct request request;
	bool whole_nodes;		/* all cores of each node: --exclusive */
	bool asked, asked_memory;	/* the user chose the fit, or where the memory is, not the site */
	const char *unweighed;		/* why Slurm chooses nodes and shares, within what is required; NULL: Topiary */
	uint32_t tasks, cpus_per_task;	/* all tasks */
	uint32_t node_tasks;		/* the most on a node; 0: any number */
	uint32_t node_room;		/* of a node with room for fewer tasks Slurm uses no core */
	bool overcommit;		/* more tasks than CPUs */
	uint16_t tasks_per_core, threads_per_core;	/* 0: no limit */
	bool own_cores;			/* spread tasks share no core where possible, without a request for that */
	bool unspread;			/* fit spread, given up; it was at spread_level */
	enum level spread_level;
	uint32_t min_nodes, max_nodes;
	uint32_t min_cpus;		/* on each node */
	uint32_t devices, device_cpus;	/* of --gpus: on all nodes, and the CPUs for each (--cpus-per-gpu), or 0 */
	uint64_t memory;		/* MB on each node, or for each CPU */
	bool memory_per_cpu, counts_memory;	/* counts_memory: Slurm allocates it */
	struct chooser_share share[2];		/* task distribution, larger shares first: shares_divide */
	uint32_t first, last;		/* numbers of nodes to try, in that order */
	bool any_nodes;			/* then the fewest nodes that hold all tasks, up to max_nodes */
};

/* Parses the site's defaults from the settings. Returns 0, or -1 with out as for no request. */
int job_request_defaults(const struct settings *s, struct request *out, struct err *e);

/* Whether the job waits until its placement is free: its cores', or its memory's in their NUMA nodes. */
bool job_request_waits(const struct job_request *a);

/*
 * The job needs so many nodes, with a task on each, whatever its tasks need; unchanged where it may not have so many.
 */
void job_request_at_least(struct job_request *a, uint32_t nodes);

/*
 * Of what is only preferred, a job that cannot have all of it gives up cores of its own first; then, if its memory must
 * be near, that its tasks are spread. False when nothing is left.
 */
bool job_request_relax(struct job_request *a);

/* Whether some tasks would share cores of a node. */
bool job_request_shares_cores(const struct job_request *a, uint32_t tasks, int node);

/*
 * Reads a job. Returns NULL, or the reason why it is left to Slurm alone: it requests something that Topiary does not
 * weigh, or cannot be kept within a domain where it is to run. A requirement is kept even where the rest is not
 * weighed: out->unweighed. out->request is set in any case if the record is valid. min_nodes and the following are
 * those of select_p_job_test.
 */
const char *job_request_read(const job_record_t *job, const struct request *site, uint32_t min_nodes,
			     uint32_t max_nodes, uint32_t req_nodes, struct job_request *out);

/*
 * The same for a job at submission, as far as it can be known then (glue_devices_submitted): *why is that reason, or
 * NULL. Returns 0, or -1 with a sentence for the user when an option is invalid.
 */
int job_request_read_submitted(const job_desc_msg_t *job, const struct request *site, struct job_request *out,
			       const char **why, struct err *e);

/* The reason why jobs in a partition are left to Slurm alone, or NULL. part may be NULL. */
const char *job_request_left_there(const part_record_t *part);

/*
 * What some of the tasks need on one node: whole cores for each task of several CPUs, as dist_tasks.c of cons_tres
 * counts.
 */
void job_request_need(const struct job_request *a, uint32_t tasks, int node, struct score_need *out);

/* The most tasks that fit on so many free cores of a node. */
uint32_t job_request_capacity(const struct job_request *a, unsigned free_cores, int node);

/* The fewest tasks that need all of so many cores; 0: no number of tasks does. */
uint32_t job_request_fewest(const struct job_request *a, unsigned cores, int node);

/*
 * Whether nodes could hold the job that hold so many tasks each (job_request_capacity): only what no way of sharing
 * tasks gets around makes this false. Begin with {0}, and tell of each node what it was told of before, else 0, and
 * what it holds.
 */
struct job_holding {
	uint32_t nodes, most;	/* with room for a task; the most tasks on one */
	uint64_t tasks;		/* on all */
};
void job_request_hold(const struct job_request *a, uint32_t was, uint32_t capacity, struct job_holding *h);
bool job_request_may_hold(const struct job_request *a, const struct job_holding *h);

/* MB that some of its tasks need of one node; 0 where memory is not what is allocated. */
uint64_t job_request_memory(const struct job_request *a, uint32_t tasks);

#endif
