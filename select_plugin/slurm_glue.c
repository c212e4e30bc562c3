/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_glue.h"

#include <string.h>

/* plugstack.c of Slurm: the plugin's name and the option's, and all that is no letter or digit becomes '_'. */
#define LEVEL_VARIABLE "_SLURM_SPANK_OPTION_topiary_topo_level="

static int node_cores(int node)
{
	return node_record_table_ptr[node] ? node_record_table_ptr[node]->tot_cores : 0;
}

static int bitmap_next(const bitstr_t *b, int from)
{
	int size = bit_size((bitstr_t *) b);

	while (from < size && !bit_test((bitstr_t *) b, from))
		from++;
	return from < size ? from : -1;
}

void core_map_init(struct core_map *m)
{
	m->offset = xcalloc(node_record_count + 1, sizeof(*m->offset));
	for (int i = 0; i < node_record_count; i++)
		m->offset[i + 1] = m->offset[i] + node_cores(i);
	m->bits = bit_alloc(m->offset[node_record_count] + 1);
}

void core_map_fini(struct core_map *m)
{
	FREE_NULL_BITMAP(m->bits);
	xfree(m->offset);
}

/* Its core bitmap holds only the job's own nodes, each with as many bits as the node had cores when the job started. */
static void add_job(struct core_map *m, const bitstr_t *nodes, const job_resources_t *r)
{
	int at = 0, size = bit_size(r->core_bitmap);

	for (int i = bitmap_next(r->node_bitmap, 0); i >= 0; i = bitmap_next(r->node_bitmap, i + 1)) {
		int cores = node_cores(i);

		if (at + cores > size)
			return;
		for (int c = 0; bit_test((bitstr_t *) nodes, i) && c < cores; c++)
			if (bit_test(r->core_bitmap, at + c))
				bit_set(m->bits, m->offset[i] + c);
		at += cores;
	}
}

void glue_busy_cores(struct core_map *m, const bitstr_t *nodes)
{
	ListIterator it = list_iterator_create(job_list);
	job_record_t *job;

	while ((job = list_next(it))) {
		const job_resources_t *r = job->job_resrcs;

		if (!(IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) || !r || !r->node_bitmap || !r->core_bitmap)
			continue;
		if (bit_size(r->node_bitmap) == node_record_count && bit_overlap_any(r->node_bitmap, (bitstr_t *) nodes))
			add_job(m, nodes, r);
	}
	list_iterator_destroy(it);
}

static bool is_excluded(const slurm_exclusion_t *x, int node, unsigned at, int core)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
	const bitstr_t *b = x && x->exc_cores ? x->exc_cores[node] : NULL;

	at = 0;
#else
	const bitstr_t *b = x;

	(void) node;
#endif
	return b && at + core < bit_size((bitstr_t *) b) && bit_test((bitstr_t *) b, at + core);
}

void glue_free_cores(int node, const struct core_map *busy, const slurm_exclusion_t *excluded, bool *free_cores)
{
	const bitstr_t *usable = node_record_table_ptr[node]->node_spec_bitmap;
	unsigned at = busy->offset[node];

	for (int c = 0; c < node_cores(node); c++)
		free_cores[c] = !bit_test(busy->bits, at + c) && !is_excluded(excluded, node, at, c) &&
				(!usable || bit_test((bitstr_t *) usable, c));
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
slurm_exclusion_t *glue_exclusion_new(const slurm_exclusion_t *came, const struct core_map *m, const bitstr_t *nodes)
{
	slurm_exclusion_t *x = xmalloc(sizeof(*x));

	if (came)
		*x = *came;
	x->exc_cores = xcalloc(node_record_count, sizeof(*x->exc_cores));
	for (int i = 0; i < node_record_count; i++) {
		const bitstr_t *had = came && came->exc_cores ? came->exc_cores[i] : NULL;

		if (!had && !(node_cores(i) && bit_test((bitstr_t *) nodes, i)))
			continue;
		x->exc_cores[i] = had ? bit_copy((bitstr_t *) had) : bit_alloc(node_cores(i));
		for (int c = 0; bit_test((bitstr_t *) nodes, i) && c < node_cores(i); c++)
			if (bit_test(m->bits, m->offset[i] + c))
				bit_set(x->exc_cores[i], c);
	}
	return x;
}

void glue_exclusion_free(slurm_exclusion_t *x)
{
	for (int i = 0; i < node_record_count; i++)
		FREE_NULL_BITMAP(x->exc_cores[i]);
	xfree(x->exc_cores);
	xfree(x);
}
#else
slurm_exclusion_t *glue_exclusion_new(const slurm_exclusion_t *came, const struct core_map *m, const bitstr_t *nodes)
{
	bitstr_t *x = bit_alloc(m->offset[node_record_count]);

	if (came)
		bit_or(x, (bitstr_t *) came);
	for (int i = bitmap_next(nodes, 0); i >= 0; i = bitmap_next(nodes, i + 1))
		for (unsigned c = m->offset[i]; c < m->offset[i + 1]; c++)
			if (bit_test(m->bits, c))
				bit_set(x, c);
	return x;
}

void glue_exclusion_free(slurm_exclusion_t *x)
{
	FREE_NULL_BITMAP(x);
}
#endif

static bool given16(uint16_t n)
{
	return n && n != NO_VAL16 && n != INFINITE16;
}

static bool shapes_sockets(const multi_core_data_t *mc)
{
	return mc && (given16(mc->boards_per_node) || given16(mc->sockets_per_board) || given16(mc->sockets_per_node) ||
		      given16(mc->cores_per_socket) || given16(mc->ntasks_per_board) || given16(mc->ntasks_per_socket));
}

static bool shares_cores(const part_record_t *part)
{
	return part && (part->max_share & ~SHARED_FORCE) != 1;
}

static uint32_t consumable(const job_record_t *job)
{
	return job->part_ptr && job->part_ptr->cr_type ? job->part_ptr->cr_type : slurm_conf.select_type_param;
}

/* Why a job is left alone, by what it asks for. */
static const char *left_alone(const job_record_t *job)
{
	const struct job_details *d = job->details;
	uint32_t across = d ? d->task_dist & SLURM_DIST_SOCKMASK & SLURM_DIST_STATE_BASE : 0;
	const struct {
		bool is;
		const char *why;
	} reasons[] = {
		{ job->magic != JOB_MAGIC || !d, "not a job record of this Slurm" },
		{ !(consumable(job) & CR_CORE), "cores are not what is allocated (CR_Core)" },
		{ d && d->whole_node == 1, "whole nodes" },
		{ d && d->overcommit, "overcommitted" },
		{ d && given16(d->core_spec), "specialised cores of its own" },
		{ d && shapes_sockets(d->mc_ptr), "sockets as asked for" },
		{ across == SLURM_DIST_SOCKCYCLIC || across == SLURM_DIST_SOCKCFULL, "spread over sockets as asked for" },
		{ job->bit_flags & SPREAD_JOB, "spread over nodes as asked for" },
		{ job->gres_list_req != NULL, "cores follow its devices" },
		{ shares_cores(job->part_ptr), "the partition shares or reserves its nodes" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].is)
			return reasons[i].why;
	return NULL;
}

static uint32_t known(uint32_t n, uint32_t otherwise)
{
	return n && n != NO_VAL && n != INFINITE ? n : otherwise;
}

const char *glue_job_ask(job_record_t *job, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes, struct job_ask *ask)
{
	const char *why = left_alone(job);
	const struct job_details *d = job->details;
	uint32_t tasks;

	if (why)
		return why;
	ask->nodes = min_nodes ? min_nodes : 1;
	if (ask->nodes > 1 && max_nodes != min_nodes && req_nodes != min_nodes)
		return "any number of nodes";
	ask->cpus_per_task = given16(d->cpus_per_task) ? d->cpus_per_task : 1;
	tasks = known(d->num_tasks, (known(d->min_cpus, 1) + ask->cpus_per_task - 1) / ask->cpus_per_task);
	if (given16(d->ntasks_per_node) && ask->nodes > 1)
		tasks = d->ntasks_per_node * ask->nodes;
	if (tasks % ask->nodes)
		return "tasks that nodes share unevenly";
	ask->tasks = tasks / ask->nodes;
	ask->min_cpus = known(d->pn_min_cpus, 1);
	return NULL;
}

/* As common_cpus_per_core() of cons_tres. */
static unsigned cpus_per_core(const struct job_details *d, int node)
{
	unsigned threads = node_record_table_ptr[node]->tpc, n = threads;
	const multi_core_data_t *mc = d->mc_ptr;

	if (mc && given16(mc->ntasks_per_core) && mc->ntasks_per_core * d->cpus_per_task < n)
		n = mc->ntasks_per_core * d->cpus_per_task;
	if (mc && given16(mc->threads_per_core) && mc->threads_per_core < n)
		n = mc->threads_per_core;
	return n ? n : 1;
}

unsigned glue_cores_needed(const job_record_t *job, const struct job_ask *ask, int node)
{
	unsigned per = cpus_per_core(job->details, node), cores;

	if (ask->cpus_per_task > per)
		cores = ask->tasks * ((ask->cpus_per_task + per - 1) / per);
	else
		cores = (ask->tasks * ask->cpus_per_task + per - 1) / per;
	return MAX(cores, (ask->min_cpus + per - 1) / per);
}

const char *glue_job_level(const job_record_t *job)
{
	for (uint32_t i = 0; i < job->spank_job_env_size; i++)
		if (!strncmp(job->spank_job_env[i], LEVEL_VARIABLE, strlen(LEVEL_VARIABLE)))
			return job->spank_job_env[i] + strlen(LEVEL_VARIABLE);
	return NULL;
}

/* What slurmd may report as sockets: packages, or by SlurmdParameters the NUMA nodes or the L3 caches. */
static const enum level socket_levels[] = { LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3 };

bool glue_shape_agrees(const struct shape *shape, const node_record_t *node)
{
	unsigned count[LEVEL_COUNT] = {0};

	if (shape->cores != node->tot_cores || (node->tpc > 1 && shape->pus != (unsigned) node->tot_cores * node->threads))
		return false;
	for (size_t i = 0; i < shape->ndomains; i++)
		count[shape->domains[i].level]++;
	for (size_t i = 0; i < sizeof(socket_levels) / sizeof(socket_levels[0]); i++)
		if (count[socket_levels[i]] == node->tot_sockets)
			return true;
	return false;
}
