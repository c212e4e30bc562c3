/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SLURM_GLUE_H
#define TOPIARY_SELECT_SLURM_GLUE_H

/*
 * All that we take from Slurm's own headers, and what differs between its releases. First, so that its names become the
 * slurm_* ones that every program linked with libslurm has.
 */
#include "src/common/slurm_xlator.h"
#include "slurm/slurm_errno.h"
#include "src/common/bitstring.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/plugin.h"
#include "src/common/read_config.h"
#include "src/common/xmalloc.h"
#include "src/slurmctld/slurmctld.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/select.h"
#else
#include "src/common/select.h"
#endif

#include "score.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
typedef list_t *slurm_list_t;
#define WILL_RUN_PARM , will_run_data_t *will_run
#define WILL_RUN_ARG , will_run
#else
typedef List slurm_list_t;
#define WILL_RUN_PARM
#define WILL_RUN_ARG
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef resv_exc_t slurm_exclusion_t;
#else
typedef bitstr_t slurm_exclusion_t;
#endif

#define JOB_TEST_PARMS (job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes, \
	uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted, slurm_exclusion_t *excluded WILL_RUN_PARM)
#define JOB_TEST_ARGS (job, nodes, min_nodes, max_nodes, req_nodes, mode, preemptees, preempted, excluded WILL_RUN_ARG)
typedef int (*job_test_t) JOB_TEST_PARMS;

/* One bit for each core of the cluster, in the order of the node table. */
struct core_map {
	bitstr_t *bits;
	uint32_t *offset;	/* of a node's first core; offset[node_record_count] is the number of all */
};

void core_map_init(struct core_map *m);
void core_map_fini(struct core_map *m);

/* Set in m the cores that jobs on these nodes hold, running or suspended. The caller holds the job and node locks. */
void glue_busy_cores(struct core_map *m, const bitstr_t *nodes);

/* free_cores[] of a node: not busy, not excluded by the caller of job_test, not specialised. */
void glue_free_cores(int node, const struct core_map *busy, const slurm_exclusion_t *excluded, bool *free_cores);

/* What is excluded for a try: what came in and the bits of m on these nodes. Free with glue_exclusion_free. */
slurm_exclusion_t *glue_exclusion_new(const slurm_exclusion_t *came, const struct core_map *m, const bitstr_t *nodes);
void glue_exclusion_free(slurm_exclusion_t *x);

/*
 * How many nodes the job wants, and how its need is counted; NULL, or the reason why this job is left to Slurm alone: it asks
 * for what we do not weigh, or its cores per node are not known before the choice.
 */
struct job_ask {
	uint32_t nodes;
	uint32_t tasks;		/* on each node */
	uint32_t cpus_per_task;
	uint32_t min_cpus;	/* on each node */
};
const char *glue_job_ask(job_record_t *job, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes, struct job_ask *ask);

/* The cores that this is on one node: whole cores to each task that has several CPUs, as dist_tasks.c of cons_tres counts. */
unsigned glue_cores_needed(const job_record_t *job, const struct job_ask *ask, int node);

/* The job's --topo-level, or NULL when it has none. Borrowed from the job. */
const char *glue_job_level(const job_record_t *job);

/* Whether the shape is that of the hardware which slurmctld counts on this node. */
bool glue_shape_agrees(const struct shape *shape, const node_record_t *node);

#endif
