/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SLURM_GLUE_H
#define TOPIARY_SELECT_SLURM_GLUE_H

/*
 * Everything used from Slurm's own headers, and the differences between its releases. Included first, so that its names
 * become the slurm_* names of libslurm.
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
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/gres.h"
#include "src/interfaces/select.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#include "src/interfaces/topology.h"
#endif
#else
#include "src/common/gres.h"
#include "src/common/select.h"
#include "src/common/slurm_topology.h"
#endif

/* Types that releases name differently, derived from what returns them. */
typedef typeof(list_iterator_create(NULL)) slurm_iterator_t;
typedef typeof(*((job_record_t *) NULL)->details) slurm_job_details_t;

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

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define CR_CORE SELECT_CORE
#define CR_MEMORY SELECT_MEMORY
#endif

#define JOB_TEST_PARMS (job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes, \
	uint32_t req_nodes, uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted, \
	slurm_exclusion_t *excluded WILL_RUN_PARM)
#define JOB_TEST_ARGS (job, nodes, min_nodes, max_nodes, req_nodes, mode, preemptees, preempted, excluded WILL_RUN_ARG)
typedef int (*slurm_job_test_t) JOB_TEST_PARMS;

/* The first bit set at `from` or later, or -1. Skips zero words, because clusters are large and jobs are small. */
static inline int glue_next(const bitstr_t *b, int from)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	return from < bit_size((bitstr_t *) b) ? bit_ffs_from_bit((bitstr_t *) b, from) : -1;
#else
	int size = bit_size((bitstr_t *) b);

	while (from < size) {
		if (!b[BITSTR_OVERHEAD + (from >> BITSTR_SHIFT)])
			from = ((from >> BITSTR_SHIFT) + 1) << BITSTR_SHIFT;
		else if (bit_test((bitstr_t *) b, from))
			return from;
		else
			from++;
	}
	return -1;
#endif
}

/* --exclusive without "=user" and the like: a number until 23.02, bits since then. */
static inline bool glue_whole_nodes(const slurm_job_details_t *d)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	return d->whole_node & WHOLE_NODE_REQUIRED;
#else
	return d->whole_node == WHOLE_NODE_REQUIRED;
#endif
}

/* Whether Slurm counts only those devices of a node that are near free cores. */
#define GLUE_GRES_NEAR (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0))

/* Whether a value of 16 or 32 bits was set. */
static inline bool glue_given16(uint16_t n)
{
	return n && n != NO_VAL16 && n != INFINITE16;
}

static inline uint32_t glue_known(uint32_t n, uint32_t otherwise)
{
	return n && n != NO_VAL && n != INFINITE ? n : otherwise;
}

/*
 * Whether Slurm knows a network between the nodes of the job's partition. Since 25.05 topology.yaml wins over
 * TopologyPlugin and a partition may have a topology of its own; a flat one has no records.
 */
static inline bool glue_network(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	int records = 0;

	return !topology_g_get(TOPO_DATA_REC_CNT, job->part_ptr ? job->part_ptr->topology_name : NULL, &records) &&
	       records > 0;
#else
	static const char *const flat[] = { "topology/none", "topology/default", "topology/flat" };
	const char *plugin = slurm_conf.topology_plugin;

	(void) job;
	for (size_t i = 0; plugin && i < sizeof(flat) / sizeof(flat[0]); i++)
		if (!strcmp(plugin, flat[i]))
			plugin = NULL;
	return plugin;
#endif
}

/*
 * Whether the job's partition has the cluster's own network; an address of a node in that, "top.leaf1.cn1", with its
 * pattern "switch.switch.node", both to be freed; and what scontrol has set of the node's place (25.05), or NULL.
 */
static inline bool glue_cluster_network(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	return job->part_ptr && job->part_ptr->topology_idx == 0;
#else
	(void) job;
	return true;
#endif
}

static inline int glue_network_address(const node_record_t *node, char **address, char **pattern)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return topology_g_get_node_addr(node->name, address, pattern);
#elif SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
	return slurm_topo_get_node_addr(node->name, address, pattern);
#else
	(void) node;
	(void) address;
	(void) pattern;
	return SLURM_ERROR;
#endif
}

static inline const char *glue_network_place(const node_record_t *node)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	return node ? node->topology_str : NULL;
#else
	(void) node;
	return NULL;
#endif
}

/* Whether the job's nodes come in segments, each in a block (24.05). */
static inline bool glue_segments(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return glue_given16(job->details->segment_size);
#else
	(void) job;
	return false;
#endif
}

/* --exclusive=topo, of the job or of its partition (24.05): no other job may share its switches or blocks. */
static inline bool glue_network_alone(const job_record_t *job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return IS_JOB_WHOLE_TOPO(job);
#else
	(void) job;
	return false;
#endif
}

/* Adds to the job's nodes those that it keeps from other jobs, or waits for, because it is to be alone. */
static inline void glue_add_network_alone(const job_record_t *job, bitstr_t *nodes)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	if (glue_network_alone(job) && job->part_ptr)
		topology_g_whole_topo(nodes, job->part_ptr->topology_idx);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	if (glue_network_alone(job))
		topology_g_whole_topo(nodes);
#else
	(void) job;
	(void) nodes;
#endif
}

/*
 * The devices that a job asks for at submission, as slurmctld itself will read them, and sets the tasks, nodes and CPUs
 * of a task that follow. Returns 0, or an error number: Slurm will refuse the job by it.
 */
static inline int glue_devices_submitted(job_desc_msg_t *d, slurm_list_t *out)
{
	d->min_nodes = glue_known(d->min_nodes, 1);
	d->max_nodes = glue_known(d->max_nodes, NO_VAL);
	/* As Slurm's, which loads its plugins of devices first. */
	if (!d->cpus_per_tres && !d->mem_per_tres && !d->tres_per_job && !d->tres_per_node && !d->tres_per_socket &&
	    !d->tres_per_task && !glue_given16(d->ntasks_per_tres))
		return SLURM_SUCCESS;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return gres_job_state_validate(&(gres_job_state_validate_t){
		.cpus_per_tres = d->cpus_per_tres, .mem_per_tres = d->mem_per_tres, .tres_freq = d->tres_freq,
		.tres_per_job = d->tres_per_job, .tres_per_node = d->tres_per_node,
		.tres_per_socket = d->tres_per_socket, .tres_per_task = d->tres_per_task,
		.cpus_per_task = &d->cpus_per_task, .max_nodes = &d->max_nodes, .min_cpus = &d->min_cpus,
		.min_nodes = &d->min_nodes, .ntasks_per_node = &d->ntasks_per_node,
		.ntasks_per_socket = &d->ntasks_per_socket, .ntasks_per_tres = &d->ntasks_per_tres,
		.num_tasks = &d->num_tasks, .sockets_per_node = &d->sockets_per_node, .gres_list = out });
#else
	return gres_job_state_validate(d->cpus_per_tres, d->tres_freq, d->tres_per_job, d->tres_per_node,
				       d->tres_per_socket, d->tres_per_task, d->mem_per_tres, &d->num_tasks,
				       &d->min_nodes, &d->max_nodes, &d->ntasks_per_node, &d->ntasks_per_socket,
				       &d->sockets_per_node, &d->cpus_per_task, &d->ntasks_per_tres, out);
#endif
}

/* DefCpuPerGPU or DefMemPerGPU (JOB_DEF_CPU_PER_GPU and so on) of a partition, else of the cluster; 0: none. */
static inline uint64_t glue_gpu_default(const part_record_t *part, uint16_t type)
{
	slurm_list_t lists[] = { part ? part->job_defaults_list : NULL, slurm_conf.job_defaults_list };
	job_defaults_t *d = NULL;

	for (int i = 0; !d && i < 2; i++) {
		slurm_iterator_t it = lists[i] ? list_iterator_create(lists[i]) : NULL;

		while (it && (d = list_next(it)) && d->type != type)
			;
		if (it)
			list_iterator_destroy(it);
	}
	return d ? d->value : 0;
}

/* Whether Slurm takes cores off before it counts devices, and does not count again. */
#define GLUE_COUNTS_DEVICES_ONCE (SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0))

/*
 * RestrictedCoresPerGPU (24.05) reserves some cores of a node for jobs with GPUs; cons_tres treats jobs with whole
 * nodes like these (cons_helpers.c). Whether the job may use them, and which cores of a node all other jobs may have;
 * NULL: all.
 */
static inline bool glue_lists_gpus(slurm_list_t gres)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	return gres && list_find_first(gres, gres_find_gpu_or_alt, NULL);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	uint32_t gpu = gres_get_gpu_plugin_id();

	return gres && list_find_first(gres, gres_find_id, &gpu);
#else
	(void) gres;
	return true;
#endif
}

static inline bool glue_wants_gpus(const job_record_t *job)
{
	return glue_lists_gpus(job->gres_list_req) || job->details->whole_node == WHOLE_NODE_REQUIRED;
}

static inline const bitstr_t *glue_without_gpus(int node)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return node_record_table_ptr[node]->gpu_spec_bitmap;
#else
	(void) node;
	return NULL;
#endif
}

/* How many of these cores a job may have of each of its GPUs. */
static inline unsigned glue_cores_per_gpu(int node)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
	return node_record_table_ptr[node]->res_cores_per_gpu;
#else
	(void) node;
	return 0;
#endif
}

/* Whether some cores may not be used. */
static inline bool glue_excludes_cores(const slurm_exclusion_t *x)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	return x && x->exc_cores;
#else
	return x;
#endif
}

/* Whether the job may not have some devices, or only some: those of reservations (23.11). */
static inline bool glue_reserves_devices(const slurm_exclusion_t *x)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	return x && (x->gres_list_exc || x->gres_list_inc);
#else
	(void) x;
	return false;
#endif
}

/*
 * The administrator's weight of a node; nodes that must boot are above all others. When a job is to start, slurmctld
 * has just set sched_weight, and cons_tres changes its last byte on nodes that it is offered. In a plan it is that of
 * earlier decisions, and cons_tres writes another unit there (24.11).
 */
static inline uint64_t glue_weight(const node_record_t *n, bool starts)
{
	bool boots = IS_NODE_POWERED_DOWN(n) || IS_NODE_POWERING_DOWN(n) || IS_NODE_POWERING_UP(n);

	return starts ? n->sched_weight >> 8 : (uint64_t) boots << 32 | n->config_ptr->weight;
}

static inline unsigned glue_cores(int node)
{
	return node_record_table_ptr[node] ? node_record_table_ptr[node]->tot_cores : 0;
}

#endif
