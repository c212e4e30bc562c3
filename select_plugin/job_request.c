/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "job_request.h"

/*
 * As in Slurm's plugstack.c: the plugin's name and the option's, with every character that is neither letter nor digit
 * replaced by '_'.
 */
#define OPTION "_SLURM_SPANK_OPTION_topiary_"

static const struct {
	const char *variable, *name;
} options[] = {
	{ OPTION "topo_fit=", "topo-fit" },
	{ OPTION "topo_level=", "topo-level" },
	{ OPTION "topo_request=", "topo-request" },
	{ OPTION "topo_mem=", "topo-mem" },
};

/* Products of user-given numbers may exceed 32 bits: numbers larger than any node saturate. */
static unsigned divide_up(uint64_t n, unsigned by)
{
	return n > UINT32_MAX - by ? UINT32_MAX / by : ((unsigned) n + by - 1) / by;
}

int job_request_defaults(const struct settings *s, struct request *out, struct err *e)
{
	*out = (struct request){ .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_PREFER,
				 .weight = request_weight_parse(s->topo_weight) };
	return request_set(out, "TopoFit", s->topo_fit, e) || request_set(out, "TopoLevel", s->topo_level, e) ||
	       request_set(out, "TopoMem", s->topo_mem, e) ? -1 : 0;
}

#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* The last value of each option counts, as in any environment; a hostile one may occur a million times. */
static void read_options(char **variables, uint32_t count, const char *value[static OPTIONS])
{
	for (uint32_t i = 0; i < count; i++)
		for (size_t o = 0; !strncmp(variables[i], OPTION, strlen(OPTION)) && o < OPTIONS; o++) {
			size_t len = strlen(options[o].variable);

			if (!strncmp(variables[i], options[o].variable, len))
				value[o] = variables[i] + len;
		}
}

/* The comment is for users who cannot give options; options override it. a->asked: whether either states a fit. */
static int read_request(const char *comment, char **variables, uint32_t count, struct job_request *a, struct err *e)
{
	const char *value[OPTIONS] = {0};
	struct request r = a->request;

	r.fit = r.memory = FIT_COUNT;
	read_options(variables, count, value);
	if (comment && request_comment(&r, comment, e))
		return -1;
	for (size_t o = 0; o < OPTIONS; o++)
		if (value[o] && request_set(&r, options[o].name, value[o], e))
			return -1;
	a->asked = r.fit != FIT_COUNT;
	a->asked_memory = r.memory != FIT_COUNT;
	r.fit = a->asked ? r.fit : a->request.fit;
	r.memory = a->asked_memory ? r.memory : a->request.memory;
	a->request = r;
	return 0;
}

/*
 * As min_tasks_this_node of _select_cores() in cons_tres, topology/common from 25.05 on. For a job's only task steer
 * states no more than its own room: Slurm has no cores for others.
 */
static uint32_t room_on_node(bool overcommit, bool single, uint16_t per_node, uint16_t per_board, uint16_t per_socket)
{
	return overcommit ? 0 : glue_given16(per_node) ? (single ? 1 : per_node) : glue_given16(per_board) ? per_board :
	       glue_given16(per_socket) ? per_socket : 0;
}

static uint32_t consumable_flags(const part_record_t *part)
{
	return part && part->cr_type ? part->cr_type : slurm_conf.select_type_param;
}

/* Requests of a job by which Slurm itself decides where its cores are. */
struct slurm_options {
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

static struct slurm_options options_of_job(const job_record_t *job)
{
	const slurm_job_details_t *d = job->details;
	const multi_core_data_t *mc = d->mc_ptr;

	return (struct slurm_options){
		.overcommit = d->overcommit, .core_spec = glue_given16(d->core_spec),
		.spread = job->bit_flags & SPREAD_JOB,
		.sockets = mc && ANY_GIVEN(mc->boards_per_node, mc->sockets_per_board, mc->sockets_per_node,
					   mc->cores_per_socket,
					   mc->ntasks_per_board, mc->ntasks_per_socket),
		.distribution = d->task_dist,
	};
}

static struct slurm_options options_of_submitted(const job_desc_msg_t *d)
{
	return (struct slurm_options){
		.overcommit = d->overcommit && d->overcommit != NO_VAL8, .core_spec = glue_given16(d->core_spec),
		.spread = d->bitflags & SPREAD_JOB,
		.sockets = ANY_GIVEN(d->boards_per_node, d->sockets_per_board, d->sockets_per_node, d->cores_per_socket,
				     d->ntasks_per_board, d->ntasks_per_socket),
		.distribution = d->task_dist == NO_VAL ? 0 : d->task_dist,
	};
}

/* The reason why nodes and cores are left to Slurm, from the job's options. */
static const char *left_alone(const struct slurm_options *m)
{
	uint32_t across = m->distribution & SLURM_DIST_SOCKMASK & SLURM_DIST_STATE_BASE;
	const struct {
		bool is;
		const char *why;
	} reasons[] = {
		{ m->overcommit, "--overcommit" },
		{ m->core_spec, "--core-spec or --thread-spec" },
		{ m->sockets, "the requested sockets, cores or threads" },
		{ across == SLURM_DIST_SOCKCYCLIC || across == SLURM_DIST_SOCKCFULL,
		  "the requested distribution over sockets" },
		{ m->spread, "--spread-job" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].is)
			return reasons[i].why;
	return NULL;
}

const char *job_request_left_there(const part_record_t *part)
{
	if (!(consumable_flags(part) & CR_CORE))
		return "SelectTypeParameters does not allocate cores (CR_Core)";
	if (part && !part->max_share)
		return "the partition allocates whole nodes (OverSubscribe=EXCLUSIVE)";
	return part && (part->max_share & ~SHARED_FORCE) != 1 ?
		"jobs may share cores in the partition (OverSubscribe)" : NULL;
}

/*
 * A requirement within each node can be met whatever else the job requests, unless it gets whole nodes: there, all
 * cores are the job's.
 */
static const char *unsupported_reason(struct job_request *a, const struct slurm_options *m)
{
	const char *why = left_alone(m);

	if (a->request.fit == FIT_OFF)
		return "topo-fit is off";
	if (!why && a->tasks < a->min_nodes)
		why = "it requests more nodes than it has tasks";
	if (a->request.fit != FIT_REQUIRE || a->request.memory == FIT_REQUIRE || a->request.path.steps ||
	    a->whole_nodes)
		return why;
	a->unweighed = why;
	return NULL;
}

/* The number of tasks as given, or else as Slurm computes it (job_mgr.c). */
static uint32_t count_tasks(const struct job_request *a, uint32_t tasks, uint32_t min_cpus)
{
	uint32_t own = a->node_tasks ? divide_up((uint64_t) a->node_tasks * a->min_nodes, 1)
				     : divide_up(glue_known(min_cpus, 1), a->cpus_per_task);

	return glue_known(tasks, own);
}

/*
 * For a range, Slurm gives as many nodes as it can now. If any number will do: one, or the fewest that hold the tasks.
 * A requirement within each node may need several nodes although one would hold the tasks.
 */
static void count_nodes(struct job_request *a, uint32_t req_nodes, bool devices)
{
	bool range = req_nodes > a->min_nodes, any = !range && a->max_nodes > a->min_nodes;

	a->first = range ? MIN(req_nodes, MAX(a->tasks, a->min_nodes)) : a->min_nodes;
	a->last = any && a->request.fit == FIT_REQUIRE ? MIN(a->max_nodes, a->tasks) : a->min_nodes;
	a->last = MAX(a->last, a->min_nodes);
	/* Slurm decides how many nodes have the devices. */
	a->any_nodes = any && a->request.fit != FIT_REQUIRE && !devices;
	shares_divide(a->share, a->tasks, a->min_nodes);
}

void job_request_at_least(struct job_request *a, uint32_t nodes)
{
	if (nodes <= a->min_nodes || nodes > a->max_nodes)
		return;
	a->min_nodes = nodes;
	a->tasks = MAX(a->tasks, nodes);
	a->first = MAX(a->first, nodes);
	a->last = MAX(a->last, nodes);
	shares_divide(a->share, a->tasks, nodes);
}

static void read_memory(const job_record_t *job, struct job_request *a)
{
	const slurm_job_details_t *d = job->details;

	a->counts_memory = consumable_flags(job->part_ptr) & CR_MEMORY;
	if (!a->counts_memory)
		return;
	a->memory_per_cpu = d->pn_min_memory & MEM_PER_CPU;
	a->memory = d->pn_min_memory & ~MEM_PER_CPU;
}

static int counts_for_job(void *gres, void *unused)
{
	(void) unused;
	return ((gres_job_state_t *) ((gres_state_t *) gres)->gres_data)->gres_per_job > 0;
}

const char *job_request_read(const job_record_t *job, const struct request *site, uint32_t min_nodes,
			     uint32_t max_nodes, uint32_t req_nodes, struct job_request *out)
{
	const slurm_job_details_t *d = job->details;
	struct job_request a = { .request = *site, .min_nodes = min_nodes ? min_nodes : 1, .max_nodes = max_nodes };
	const char *why;
	struct slurm_options slurm;

	*out = a;
	if (job->magic != JOB_MAGIC || !d)
		return "slurmctld's job record is of another release of Slurm";
	if (read_request(job->comment, job->spank_job_env, job->spank_job_env_size, &a, NULL))
		return "unknown Topiary option, or value of one, in --comment or the environment of the job";
	a.cpus_per_task = glue_given16(d->cpus_per_task) ? d->cpus_per_task : 1;
	a.node_tasks = glue_given16(d->ntasks_per_node) ? d->ntasks_per_node : 0;
	a.tasks = count_tasks(&a, d->num_tasks, d->min_cpus);
	if (d->mc_ptr) {
		a.tasks_per_core = glue_given16(d->mc_ptr->ntasks_per_core) ? d->mc_ptr->ntasks_per_core : 0;
		a.threads_per_core = glue_given16(d->mc_ptr->threads_per_core) ? d->mc_ptr->threads_per_core : 0;
		a.node_room = room_on_node(d->overcommit, d->num_tasks == 1, d->ntasks_per_node,
					   d->mc_ptr->ntasks_per_board, d->mc_ptr->ntasks_per_socket);
	}
	a.min_cpus = glue_known(d->pn_min_cpus, 1);
	a.whole_nodes = glue_whole_nodes(d);
	a.own_cores = a.request.fit == FIT_SPREAD && !a.tasks_per_core && !a.threads_per_core && d->mc_ptr &&
		      !d->overcommit;
	if (a.own_cores)
		a.tasks_per_core = 1;
	read_memory(job, &a);
	if (!a.memory && !(a.counts_memory && job->gres_list_req))
		a.request.memory = FIT_OFF;
	/* Where devices are counted for the whole job, Slurm gives the fewest nodes of a range (_eval_nodes()). */
	count_nodes(&a, job->gres_list_req && list_find_first(job->gres_list_req, counts_for_job, NULL) ? a.min_nodes :
		    req_nodes, job->gres_list_req);
	slurm = options_of_job(job);
	a.overcommit = slurm.overcommit;
	why = unsupported_reason(&a, &slurm);
	*out = a;
	return why ? why : job_request_left_there(job->part_ptr);
}

int job_request_read_submitted(const job_desc_msg_t *job, const struct request *site, struct job_request *out,
			       const char **why, struct err *e)
{
	struct job_request a = { .request = *site, .min_nodes = glue_known(job->min_nodes, 1) };
	struct slurm_options slurm = options_of_submitted(job);

	if (read_request(job->comment, job->spank_job_env, job->spank_job_env_size, &a, e))
		return -1;
	a.max_nodes = MAX(a.min_nodes, glue_known(job->max_nodes, UINT32_MAX));
	a.cpus_per_task = glue_given16(job->cpus_per_task) ? job->cpus_per_task : 1;
	a.node_tasks = glue_given16(job->ntasks_per_node) ? job->ntasks_per_node : 0;
	a.tasks = count_tasks(&a, job->num_tasks, job->min_cpus);
	a.overcommit = slurm.overcommit;
	a.node_room = room_on_node(a.overcommit, job->num_tasks == 1, job->ntasks_per_node, job->ntasks_per_board,
				   job->ntasks_per_socket);
	a.tasks_per_core = glue_given16(job->ntasks_per_core) ? job->ntasks_per_core : 0;
	a.threads_per_core = glue_given16(job->threads_per_core) ? job->threads_per_core : 0;
	a.min_cpus = glue_known(job->pn_min_cpus == NO_VAL16 ? NO_VAL : job->pn_min_cpus, 1);
	/* As _copy_job_desc_to_job_record() of job_mgr.c: Slurm then has cores for so many on each node. */
	if (!a.overcommit && glue_known(job->num_tasks, 1) > 1)
		a.min_cpus = MAX(a.min_cpus, divide_up((uint64_t) a.node_tasks * a.cpus_per_task, 1));
	a.whole_nodes = job->shared == JOB_SHARED_NONE;
	a.memory_per_cpu = job->pn_min_memory != NO_VAL64 && job->pn_min_memory & MEM_PER_CPU;
	a.memory = job->pn_min_memory != NO_VAL64 ? job->pn_min_memory & ~MEM_PER_CPU : 0;
	count_nodes(&a, a.min_nodes, false);
	*why = unsupported_reason(&a, &slurm);
	*out = a;
	return 0;
}

/* As common_cpus_per_core() of cons_tres. */
static unsigned cpus_per_core(const struct job_request *a, int node)
{
	unsigned n = node_record_table_ptr[node]->tpc;

	if (a->tasks_per_core && a->tasks_per_core * a->cpus_per_task < n)
		n = a->tasks_per_core * a->cpus_per_task;
	if (a->threads_per_core && a->threads_per_core < n)
		n = a->threads_per_core;
	return n ? n : 1;
}

/*
 * The CPUs of a task's cores: only tasks of whole cores leave the last core's other threads unused (_allocate_sc() of
 * cons_tres); else the next task has these.
 */
static unsigned task_cpus(const struct job_request *a, unsigned per)
{
	bool whole = a->tasks_per_core == 1 || a->request.fit == FIT_SPREAD;

	return whole && a->cpus_per_task > per ? divide_up(a->cpus_per_task, per) * per : a->cpus_per_task;
}

bool job_request_relax(struct job_request *a)
{
	if (a->own_cores) {
		a->own_cores = false;
		a->tasks_per_core = 0;
		return true;
	}
	if (a->request.fit != FIT_SPREAD || a->request.memory != FIT_REQUIRE)
		return false;
	a->unspread = true;
	a->spread_level = a->request.level;
	a->request.fit = FIT_PREFER;
	a->request.level = LEVEL_NODE;
	return true;
}

bool job_request_shares_cores(const struct job_request *a, uint32_t tasks, int node)
{
	return tasks > 1 && cpus_per_core(a, node) > a->cpus_per_task;
}

/* On each node; of --gpus on an equal share of so many nodes, 0: unknown. */
static unsigned least_cpus(const struct job_request *a, uint32_t nodes)
{
	uint32_t devices = nodes ? divide_up(a->devices, nodes) : 0;

	return MAX(a->min_cpus, divide_up((uint64_t) devices * a->device_cpus, 1));
}

void job_request_need(const struct job_request *a, uint32_t tasks, int node, struct score_need *out)
{
	unsigned per = cpus_per_core(a, node), each = a->cpus_per_task > per ? divide_up(a->cpus_per_task, per) : 1;
	unsigned cpus = task_cpus(a, per), cores = divide_up((uint64_t) tasks * cpus, per);

	cores = MAX(cores, divide_up(least_cpus(a, a->share[0].nodes + a->share[1].nodes), per));
	/* A path of cores alone says no more than their number. */
	*out = (struct score_need){ .cores = cores, .task_cores = each, .task = { cpus, per }, .fit = a->request.fit,
				    .level = a->request.level, .path = a->request.path.steps > 1 ||
				    a->request.path.kind ? &a->request.path : NULL };
}

uint32_t job_request_capacity(const struct job_request *a, unsigned free_cores, int node)
{
	unsigned per = cpus_per_core(a, node);

	if (free_cores * per < least_cpus(a, a->min_nodes == a->max_nodes ? a->min_nodes : 0))
		return 0;
	return free_cores * per / task_cpus(a, per);
}

uint32_t job_request_fewest(const struct job_request *a, unsigned cores, int node)
{
	uint32_t few = 0, most = job_request_capacity(a, cores, node);
	struct score_need need;

	while (few + 1 < most) {
		uint32_t half = few + (most - few) / 2;

		job_request_need(a, half, node, &need);
		if (need.cores < cores)
			few = half;
		else
			most = half;
	}
	job_request_need(a, most, node, &need);
	return need.cores < cores ? 0 : most;
}

void job_request_hold(const struct job_request *a, uint32_t was, uint32_t capacity, struct job_holding *h)
{
	uint32_t most = a->node_tasks ? a->node_tasks : UINT32_MAX;

	was = MIN(was, most);
	capacity = MIN(capacity, most);
	h->nodes += !was && capacity;
	h->tasks += capacity - was;
	h->most = MAX(h->most, capacity);
}

bool job_request_waits(const struct job_request *a)
{
	return (a->request.fit == FIT_REQUIRE || a->request.memory == FIT_REQUIRE) && !a->whole_nodes;
}

bool job_request_may_hold(const struct job_request *a, const struct job_holding *h)
{
	return h->nodes >= a->min_nodes && h->nodes &&
	       (a->overcommit || (h->tasks >= a->tasks && (uint64_t) h->most * a->max_nodes >= a->tasks));
}

uint64_t job_request_memory(const struct job_request *a, uint32_t tasks)
{
	return a->memory_per_cpu ? a->memory * MAX((uint64_t) tasks * a->cpus_per_task, a->min_cpus) : a->memory;
}
