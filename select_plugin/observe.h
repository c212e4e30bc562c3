/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_OBSERVE_H
#define TOPIARY_SELECT_OBSERVE_H

#include "base/settings.h"
#include "job_request.h"

/*
 * TopoMode=observe: Slurm's own choice stands, and beside it Topiary's is computed for the same job, on the same nodes
 * and cores, when the job starts. A line of each comparison is appended to ObserveFile, for `topiary observed`; the
 * job's record has nothing of it.
 *
 * Not in the decision, which does what stock Slurm does: only the nodes that Slurm was offered are kept until the job
 * starts. The comparisons use at most ObserveShare percent of slurmctld's CPU time: a start that would exceed it is
 * counted and not compared. Slurm's plugin is not asked whether it would take Topiary's choice.
 *
 * A line, in words separated by blanks; readers ignore words that they do not know:
 *
 *	observed=1 time=1732759200 job=4711 partition=batch nodes=2 cores=64 outcome=other slurm=cn1 topiary=cn3
 *	touched=4,8,16/2,4,8 opened=2,4,8,16/0,2,4,8 passed=3
 *
 * outcome: same (nodes and cores), other, left (Topiary would leave the job to Slurm: why=), waits (it would wait for
 * what it requires). slurm, topiary: the first node. touched: packages, NUMA nodes and L3 caches with cores of the job,
 * of Slurm's choice and of Topiary's; opened: nodes, packages, NUMA nodes and L3 caches in which no job ran before.
 * passed: starts since the last line that were not compared.
 */

/* 0, or -1 with an error, and nothing is compared; observe_stop in either case. */
int observe_start(const struct settings *s, struct err *e);
void observe_stop(void);

/*
 * Slurm's plugin has found that the job can start on some of the nodes that it was offered. why: Topiary would leave it
 * to Slurm for this reason, a constant; or NULL.
 */
void observe_decided(const job_record_t *job, const struct job_request *req, const char *why, const bitstr_t *offered,
		     const slurm_exclusion_t *excluded);

/* slurmctld starts a job: called before the wrapped plugin allocates the cores and devices that it chose. */
void observe_starting(job_record_t *job);

#endif
