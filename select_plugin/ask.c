/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "ask.h"

#include <string.h>

/* plugstack.c of Slurm: the plugin's name and the option's, and all that is no letter or digit becomes '_'. */
#define OPTION "_SLURM_SPANK_OPTION_topiary_"

static const struct {
	const char *variable, *name;
} options[] = {
	{ OPTION "topo_fit=", "topo-fit" },
	{ OPTION "topo_level=", "topo-level" },
	{ OPTION "topo_request=", "topo-request" },
};

static unsigned up(unsigned n, unsigned by)
{
	return (n + by - 1) / by;
}

int ask_defaults(const char *fit, const char *level, struct request *out, struct err *e)
{
	*out = (struct request){ .fit = FIT_PREFER, .level = LEVEL_NODE };
	return request_set(out, "topo-fit", fit, e) || request_set(out, "topo-level", level, e) ? -1 : 0;
}

/* What a comment says is for those who cannot give options; who gives both means the options. */
static int read_request(const char *comment, char **variables, uint32_t count, struct request *r, struct err *e)
{
	if (comment && request_comment(r, comment, e))
		return -1;
	for (uint32_t i = 0; i < count; i++)
		for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
			size_t len = strlen(options[o].variable);

			if (!strncmp(variables[i], options[o].variable, len) &&
			    request_set(r, options[o].name, variables[i] + len, e))
				return -1;
		}
	return 0;
}

static bool shares_cores(const part_record_t *part)
{
	return part && (part->max_share & ~SHARED_FORCE) != 1;
}

static uint32_t consumable(const job_record_t *job)
{
	return job->part_ptr && job->part_ptr->cr_type ? job->part_ptr->cr_type : slurm_conf.select_type_param;
}

/* What a job asks of Slurm that decides by itself where its cores are. */
struct manner {
	bool overcommit, core_spec, sockets, spread;
	uint32_t distribution;
};

static bool any_given(const uint16_t *n, size_t count)
{
	while (count--)
		if (glue_given16(*n++))
			return true;
	return false;
}

#define ANY_GIVEN(...) any_given((uint16_t[]){ __VA_ARGS__ }, sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t))

static struct manner manner_of(const job_record_t *job)
{
	const slurm_job_details_t *d = job->details;
	const multi_core_data_t *mc = d->mc_ptr;

	return (struct manner){
		.overcommit = d->overcommit, .core_spec = glue_given16(d->core_spec), .spread = job->bit_flags & SPREAD_JOB,
		.sockets = mc && ANY_GIVEN(mc->boards_per_node, mc->sockets_per_board, mc->sockets_per_node, mc->cores_per_socket,
					   mc->ntasks_per_board, mc->ntasks_per_socket),
		.distribution = d->task_dist,
	};
}

static struct manner manner_of_submitted(const job_desc_msg_t *d)
{
	return (struct manner){
		.overcommit = d->overcommit && d->overcommit != NO_VAL8, .core_spec = glue_given16(d->core_spec),
		.spread = d->bitflags & SPREAD_JOB,
		.sockets = ANY_GIVEN(d->boards_per_node, d->sockets_per_board, d->sockets_per_node, d->cores_per_socket,
				     d->ntasks_per_board, d->ntasks_per_socket),
		.distribution = d->task_dist == NO_VAL ? 0 : d->task_dist,
	};
}

/* Why a job is left alone, by what it asks for. */
static const char *left_alone(const struct manner *m, const struct request *r)
{
	uint32_t across = m->distribution & SLURM_DIST_SOCKMASK & SLURM_DIST_STATE_BASE;
	const struct {
		bool is;
		const char *why;
	} reasons[] = {
		{ r->fit == FIT_OFF, "topo-fit is off" },
		{ m->overcommit, "overcommitted" },
		{ m->core_spec, "specialised cores of its own" },
		{ m->sockets, "sockets as asked for" },
		{ across == SLURM_DIST_SOCKCYCLIC || across == SLURM_DIST_SOCKCFULL, "spread over sockets as asked for" },
		{ m->spread, "spread over nodes as asked for" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].is)
			return reasons[i].why;
	return NULL;
}

/* Or by where it is to run. */
static const char *left_there(const job_record_t *job)
{
	if (!(consumable(job) & CR_CORE))
		return "cores are not what is allocated (CR_Core)";
	return shares_cores(job->part_ptr) ? "the partition shares or reserves its nodes" : NULL;
}

bool ask_share(struct ask *a, uint32_t nodes)
{
	uint32_t each = a->tasks / nodes, more = a->tasks % nodes;

	a->share[0] = (struct share){ more ? more : nodes, more ? each + 1 : each };
	a->share[1] = (struct share){ more ? nodes - more : 0, each };
	return each;
}

#define NODES_TRIED 64

/*
 * Of a range, Slurm gives as many nodes as it can have now. Where any number will do: one, or as few as hold the tasks; what
 * is required on each node may need several although one would hold them.
 */
static void count_nodes(struct ask *a, uint32_t req_nodes, bool devices)
{
	bool range = req_nodes > a->min_nodes, any = !range && a->max_nodes > a->min_nodes;

	a->first = range ? MIN(req_nodes, MAX(a->tasks, a->min_nodes)) : a->min_nodes;
	a->last = any && a->request.fit == FIT_REQUIRE ? MIN(MIN(a->max_nodes, a->tasks), a->min_nodes + NODES_TRIED) : a->min_nodes;
	a->last = MAX(a->last, a->min_nodes);
	/* How many nodes have the devices is Slurm's to say. */
	a->any_nodes = any && a->request.fit != FIT_REQUIRE && !devices;
	ask_share(a, a->min_nodes);
}

static void read_memory(const job_record_t *job, struct ask *a)
{
	const slurm_job_details_t *d = job->details;

	if (!(consumable(job) & CR_MEMORY))
		return;
	a->memory_per_cpu = d->pn_min_memory & MEM_PER_CPU;
	a->memory = d->pn_min_memory & ~MEM_PER_CPU;
}

const char *ask_read(const job_record_t *job, const struct request *site, uint32_t min_nodes, uint32_t max_nodes,
		     uint32_t req_nodes, struct ask *out)
{
	const slurm_job_details_t *d = job->details;
	struct ask a = { .request = *site, .min_nodes = min_nodes ? min_nodes : 1, .max_nodes = max_nodes };
	const char *why = NULL;
	struct manner manner;

	*out = a;
	if (job->magic != JOB_MAGIC || !d)
		return "not a job record of this Slurm";
	if (read_request(job->comment, job->spank_job_env, job->spank_job_env_size, &a.request, NULL))
		why = "a word of Topiary's that is none";
	a.cpus_per_task = glue_given16(d->cpus_per_task) ? d->cpus_per_task : 1;
	a.tasks = glue_known(d->num_tasks, up(glue_known(d->min_cpus, 1), a.cpus_per_task));
	if (glue_given16(d->ntasks_per_node) && a.min_nodes > 1)
		a.tasks = d->ntasks_per_node * a.min_nodes;
	if (d->mc_ptr) {
		a.tasks_per_core = glue_given16(d->mc_ptr->ntasks_per_core) ? d->mc_ptr->ntasks_per_core : 0;
		a.threads_per_core = glue_given16(d->mc_ptr->threads_per_core) ? d->mc_ptr->threads_per_core : 0;
	}
	a.min_cpus = glue_known(d->pn_min_cpus, 1);
	a.whole_nodes = glue_whole_nodes(d);
	read_memory(job, &a);
	count_nodes(&a, req_nodes, job->gres_list_req);
	manner = manner_of(job);
	*out = a;
	if (!why)
		why = left_alone(&manner, &a.request);
	if (!why)
		why = left_there(job);
	return why ? why : a.tasks < a.min_nodes ? "more nodes than tasks" : NULL;
}

int ask_read_submitted(const job_desc_msg_t *job, const struct request *site, struct ask *out, const char **why, struct err *e)
{
	struct ask a = { .request = *site, .min_nodes = glue_known(job->min_nodes, 1) };
	struct manner manner = manner_of_submitted(job);

	if (read_request(job->comment, job->spank_job_env, job->spank_job_env_size, &a.request, e))
		return -1;
	a.max_nodes = glue_known(job->max_nodes, job->min_nodes == NO_VAL ? NODES_TRIED : a.min_nodes);
	a.cpus_per_task = glue_given16(job->cpus_per_task) ? job->cpus_per_task : 1;
	a.tasks = glue_known(job->num_tasks, up(glue_known(job->min_cpus, 1), a.cpus_per_task));
	if (glue_given16(job->ntasks_per_node))
		a.tasks = job->ntasks_per_node * a.min_nodes;
	a.tasks_per_core = glue_given16(job->ntasks_per_core) ? job->ntasks_per_core : 0;
	a.threads_per_core = glue_given16(job->threads_per_core) ? job->threads_per_core : 0;
	a.min_cpus = glue_known(job->pn_min_cpus == NO_VAL16 ? NO_VAL : job->pn_min_cpus, 1);
	a.whole_nodes = job->shared == JOB_SHARED_NONE;
	count_nodes(&a, a.min_nodes, false);
	*why = left_alone(&manner, &a.request);
	*out = a;
	return 0;
}

/* As common_cpus_per_core() of cons_tres. */
static unsigned cpus_per_core(const struct ask *a, int node)
{
	unsigned n = node_record_table_ptr[node]->tpc;

	if (a->tasks_per_core && a->tasks_per_core * a->cpus_per_task < n)
		n = a->tasks_per_core * a->cpus_per_task;
	if (a->threads_per_core && a->threads_per_core < n)
		n = a->threads_per_core;
	return n ? n : 1;
}

void ask_need(const struct ask *a, uint32_t tasks, int node, struct score_need *out)
{
	unsigned per = cpus_per_core(a, node), each = a->cpus_per_task > per ? up(a->cpus_per_task, per) : 1;
	unsigned cores = each > 1 ? tasks * each : up(tasks * a->cpus_per_task, per);

	cores = MAX(cores, up(a->min_cpus, per));
	*out = (struct score_need){ .cores = cores, .task_cores = each, .fit = a->request.fit, .level = a->request.level,
				    .path = &a->request.path };
}

uint32_t ask_capacity(const struct ask *a, unsigned free_cores, int node)
{
	unsigned per = cpus_per_core(a, node);

	return a->cpus_per_task > per ? free_cores / up(a->cpus_per_task, per) : free_cores * per / a->cpus_per_task;
}

uint64_t ask_memory(const struct ask *a, uint32_t tasks)
{
	return a->memory_per_cpu ? a->memory * MAX(tasks * a->cpus_per_task, a->min_cpus) : a->memory;
}
