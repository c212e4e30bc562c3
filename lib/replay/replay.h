/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "replay/place.h"

/*
 * Simulates the same submissions on a cluster under another placement policy.
 *
 * Jobs are submitted at their times and wait in one queue, first come first served, with EASY backfill (Lifka 1995,
 * "The ANL/IBM SP scheduling system"): a job may overtake the first in the queue if it ends before that one can start,
 * by the time limits, or by the run times if there is no limit, or if other nodes than that one's hold it. Each job has
 * its recorded run time and number of nodes. REPLAY_DEPTH jobs are considered for backfill.
 */
#define REPLAY_DEPTH 500u

enum policy_kind {
	POLICY_STOCK,		/* Slurm without Topiary (stock_choose); requests of jobs are ignored */
	POLICY_BLOCK,		/* the same with CR_CORE_DEFAULT_DIST_BLOCK */
	POLICY_FIT,		/* with Topiary: a job's own request, for others the policy's */
};

#define REPLAY_POLICY_NAME 24
struct replay_policy {
	char name[REPLAY_POLICY_NAME];
	enum policy_kind kind;
	struct request request;
};

/*
 * "stock", "block", or a fit (score/request.h), optionally followed by ":" and a level, by ":mem=" and a value of
 * --topo-mem, by default prefer, and by ":weight=" and one of TopoWeight, by default long: "prefer", "require:l3",
 * "prefer:mem=off", "prefer:weight=queue". 0 or -1.
 */
int replay_policy_parse(const char *word, struct replay_policy *out, struct err *e);

/* Jobs by size; cores are compared with the largest node of the cluster. The first that applies, from the last up. */
enum replay_class {
	REPLAY_QUARTER, REPLAY_HALF, REPLAY_NODE,	/* on one node, with at most so much of it */
	REPLAY_NODES,			/* on several */
	REPLAY_GPUS,			/* with GPUs, on one or several */
	REPLAY_ALL, REPLAY_CLASSES,
};

struct replay_waits {
	size_t jobs;
	long long mean, p90;		/* milliseconds */
};

struct replay_result {
	size_t jobs, refused;		/* that ran; that no node could ever hold */
	size_t backfilled;
	size_t split_own[JUDGED_LEVELS], split_any[JUDGED_LEVELS], dominated;	/* jobs, as in replay/place.h */
	size_t with_memory, memory_far, memory_needless;	/* jobs that requested memory, and of them, as there */
	size_t broken;			/* packages */
	double touched_to_ideal;	/* the mean over jobs */
	double loose[JUDGED_LEVELS];	/* share of the free cores over time that are in partly used domains */
	double utilisation;		/* of the cores, from the first submission to the last end */
	struct replay_waits waits[REPLAY_CLASSES];
	long long wait_median, makespan;	/* milliseconds */
};

/* Callbacks for events; members may be NULL. Shares are borrowed. */
struct replay_watch {
	void (*started)(void *user, const struct past_job *job, const struct cluster_shares *shares, long long at);
	void (*ended)(void *user, const struct past_job *job, const struct cluster_shares *shares, long long at);
	void *user;
};

/*
 * Replays jobs, sorted by time of submission. 0, or -1 with an error: memory is short, or a core was allocated to two
 * jobs, which would be a bug. watch may be NULL.
 */
int replay_run(const struct cluster *c, const struct jobs *jobs, const struct replay_policy *policy,
	       const struct replay_watch *watch, struct replay_result *out, struct err *e);
