/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "steer.h"

#include "comment.h"
#include "device.h"
#include "observe.h"
#include "occupancy.h"
#include "plan.h"

static struct settings settings;
static struct request site;
static bool started;
static const char *idle = "slurmctld has not read its configuration";	/* why nothing is done; NULL if started */

/* What Topiary does with a job. Slurm's own choice stands in the first two. */
static enum { MODE_OFF, MODE_OBSERVE, MODE_ON } site_mode;
static bool has_placed;		/* there may be jobs that have what MODE_ON leaves in their records */
static bool partitions_checked;

static void log_snapshot(bool trouble, const char *line)
{
	if (trouble)
		error("topiary: %s", line);
	else
		info("topiary: %s", line);
}

void steer_start(void)
{
	char *path = get_extra_conf_path("topiary.conf");
	struct err e;
	int rc;

	steer_stop();
	idle = "Topiary's select plugin is not active (see slurmctld's log)";
	rc = settings_load(path, &settings, &e);
	if (rc == 0 && (rc = job_request_defaults(&settings, &site, &e))) {
		err_within(&e, "%s", path);
		settings_free(&settings);
	}
	xfree(path);
	site_mode = rc ? MODE_OFF : !strcasecmp(settings.topo_mode, "on") ? MODE_ON :
		    !strcasecmp(settings.topo_mode, "observe") ? MODE_OBSERVE : MODE_OFF;
	partitions_checked = false;
	if (rc == 0 && site_mode == MODE_OFF) {
		idle = "TopoMode=off in slurmctld's topiary.conf";
		info("topiary: TopoMode=off: jobs are placed as without Topiary");
		settings_free(&settings);
		snapshot_watch_drop();
	} else if (rc) {
		error("topiary: %s; jobs are placed as without Topiary", e.text);
		snapshot_watch_drop();
	} else if (snapshot_watch_start(settings.snapshot_file, settings.snapshot_poll, log_snapshot, &e)) {
		error("topiary: %s", e.text);
		settings_free(&settings);
	} else {
		started = true;
		idle = NULL;
		has_placed |= site_mode == MODE_ON;
		comment_begin(settings.topo_verdicts);
	}
	if (started && site_mode == MODE_OBSERVE)
		info("topiary: TopoMode=observe: Slurm places all jobs; comparisons are in %s", settings.observe_file);
	if (started && (site_mode == MODE_OBSERVE || settings_mode_excludes(&settings, NULL, NULL, NULL)) &&
	    observe_start(&settings, &e))
		error("topiary: %s; nothing is compared", e.text);
	if (started && !(slurm_conf.select_type_param & CR_CORE))
		error("topiary: SelectTypeParameters does not allocate cores (CR_Core): jobs are placed as without"
		      " Topiary, except in partitions with CR_Core");
}

/* Where TopoMode is on, jobs that it is not for are observed. */
static int mode_of(const job_record_t *job)
{
	if (!started || job->magic != JOB_MAGIC)
		return started ? site_mode : MODE_OFF;
	if (!settings_mode_excludes(&settings, job->part_ptr ? job->part_ptr->name : NULL,
				    job->qos_ptr ? job->qos_ptr->name : NULL, job->account))
		return site_mode;
	return site_mode == MODE_ON ? MODE_OBSERVE : MODE_OFF;
}

/* When slurmctld has read its partitions. */
static void partitions_check(void)
{
	char *names = xstrdup(settings.topo_partitions), *rest = names, *name;

	while (rest && (name = strsep(&rest, ", ")))
		if (*name && !find_part_record(name))
			error("topiary: TopoPartitions=%s: there is no partition %s", settings.topo_partitions, name);
	xfree(names);
	partitions_checked = true;
}

void steer_stop(void)
{
	observe_stop();
	snapshot_watch_stop();
	if (started)
		settings_free(&settings);
	started = false;
	comment_end();
	occupancy_end();
	candidates_clear();
	plans_clear();
}

/* The arguments of one call of job_test. */
struct call {
	slurm_job_test_t inner;
	job_record_t *job;
	bitstr_t *nodes;
	uint32_t min_nodes, max_nodes, req_nodes;
	uint16_t mode;
	slurm_list_t preemptees, *preempted;
	slurm_exclusion_t *excluded;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run;
#endif
};

static int call_inner(const struct call *c, bitstr_t *nodes, slurm_list_t preemptees, slurm_exclusion_t *excluded)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run = c->will_run;
#endif
	return c->inner(c->job, nodes, c->min_nodes, c->max_nodes, c->req_nodes, c->mode, preemptees, c->preempted,
			excluded
			WILL_RUN_ARG);
}

/* --- attempts --- */

struct attempt {
	const struct call *call;
	slurm_list_t preemptees;	/* offered for preemption; NULL: none */
	bool later;			/* a later start is acceptable */
	bool last;			/* made even if the budget is used up */
	bool refused;			/* Slurm's plugin did not take cores that had been chosen */
	struct plan plan;		/* of the attempts that have one */
};

static bool starts_now(const struct attempt *a)
{
	return SELECT_IS_MODE_RUN_NOW(a->call->mode);
}

/*
 * When Slurm simulates the end of a job that has its part of the network alone, it frees the job's nodes outside those
 * offered, too, and logs an error for each (job_res_rm_job() of cons_tres): so all are offered, the others without any
 * core.
 */
static void offer_without_cores(const bitstr_t *nodes, bitstr_t *in, slurm_exclusion_t *excluded)
{
	slurm_iterator_t it = list_iterator_create(job_list);
	job_record_t *job;
	uint64_t *none;

	while ((job = list_next(it)))
		if ((IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->details && glue_network_alone(job))
			break;
	list_iterator_destroy(it);
	none = job ? occupancy_none() : NULL;
	for (int i = glue_next(nodes, 0); none && i >= 0; i = glue_next(nodes, i + 1)) {
		if (bit_test(in, i))
			continue;
		exclusion_keep(excluded, i, none);
		bit_set(in, i);
	}
	free(none);
}

/*
 * Of a node with fewer devices than others Slurm takes the cores of a path that no device needs. Slurm keeps the cores
 * of a job only when it starts it, so that a test whether the job can start now tries a start, too: backfill reserves
 * nodes for a job whose start fails. Of a start that preempts other jobs the cores are not known.
 */
static bool has_path(const struct call *c, const struct candidate_set *s, bitstr_t *nodes, slurm_list_t preemptees,
		     slurm_exclusion_t *excluded)
{
	unsigned cores = request_path_cores(&s->req->request.path), at = 0;
	bool starts = SELECT_IS_MODE_RUN_NOW(c->mode), good = true;
	job_resources_t **r = &c->job->job_resrcs;
	struct call start = *c;

	if (!cores || s->req->whole_nodes || (!starts && (preemptees || c->job->start_time > time(NULL))))
		return true;
	start.mode = SELECT_MODE_RUN_NOW;
	if (!starts && call_inner(&start, nodes, NULL, excluded) != SLURM_SUCCESS)
		return false;
	for (int i = *r ? glue_next((*r)->node_bitmap, 0) : -1; good && i >= 0;
	     at += glue_cores(i), i = glue_next((*r)->node_bitmap, i + 1))
		good = (unsigned) bit_set_count_range((*r)->core_bitmap, at, at + glue_cores(i)) == cores;
	if (!good || !starts)
		free_job_resources(r);
	return good;
}

/*
 * Offers exactly these candidates with exactly their cores, for so many nodes (0: as many as it may have), with so many
 * tasks on each (0: as Slurm distributes them). When the job cannot have them, everything that the call changed is
 * restored.
 */
static bool offer_shares(struct attempt *a, struct candidate_set *s, const struct candidate_node *list,
			 unsigned count, unsigned nodes, unsigned tasks)
{
	struct call narrow = *a->call, *c = &narrow;
	uint16_t *per_core = s->req->own_cores ? &c->job->details->mc_ptr->ntasks_per_core : NULL,
		 was = per_core ? *per_core : 0, *per_node = &c->job->details->ntasks_per_node, given = *per_node;
	uint32_t *min_cpus = &c->job->details->pn_min_cpus, min_given = *min_cpus;
	bitstr_t *in = bit_alloc(bit_size(c->nodes)), *required = c->job->details->req_node_bitmap;
	time_t start = c->job->start_time;
	/* Slurm holds a job whose CPUs it does not find on the cores (_block_sync_core_bitmap()). */
	uint32_t priority = c->job->priority, reason = c->job->state_reason;
	bool switches = c->job->best_switch, good = false;
	/* A job that must start now need not be simulated for a later start. */
	uint64_t now_only = a->later || !SELECT_IS_MODE_WILL_RUN(c->mode) ? 0 : TEST_NOW_ONLY & ~c->job->bit_flags;
	slurm_exclusion_t *excluded = NULL;

	c->max_nodes = nodes ? MAX(nodes, c->min_nodes) : MIN(c->max_nodes, s->req->max_nodes);
	c->req_nodes = nodes ? c->max_nodes : MIN(c->req_nodes, c->max_nodes);
	c->min_nodes = nodes ? c->max_nodes : MAX(c->min_nodes, s->req->min_nodes);
	for (unsigned i = 0; i < count; i++)
		bit_set(in, list[i].node);
	if (per_core)
		*per_core = 1;
	if (!required || bit_super_set(required, in))
		excluded = s->req->whole_nodes ? exclusion_copy(s->excluded) : plan_exclusion(s, list, count);
	if (excluded) {
		if (a->later)
			offer_without_cores(c->nodes, in, excluded);
		c->job->bit_flags |= now_only;
		*per_node = tasks ? tasks : given && c->job->details->num_tasks == 1 ? 1 : given;
		*min_cpus = MAX(min_given, tasks * s->req->cpus_per_task);
		good = call_inner(c, in, a->preemptees, excluded) == SLURM_SUCCESS &&
		       (a->later || !SELECT_IS_MODE_WILL_RUN(c->mode) || c->job->start_time <= time(NULL)) &&
		       has_path(c, s, in, a->preemptees, excluded);
		a->refused |= !good;
		*per_node = given;
		*min_cpus = min_given;
		c->job->bit_flags &= ~now_only;
		exclusion_free(excluded);
	}
	if (good) {
		bit_copybits(c->nodes, in);
	} else {
		c->job->start_time = start;
		c->job->best_switch = switches;
		c->job->priority = priority;
		c->job->state_reason = reason;
	}
	if (per_core)
		*per_core = was;
	FREE_NULL_BITMAP(in);
	return good;
}

/* Whether the cores of a path hold no more than so many tasks on each of these nodes. */
static bool path_is_full(const struct candidate_set *s, const struct candidate_node *list, unsigned count,
			 uint32_t tasks)
{
	unsigned cores = request_path_cores(&s->req->request.path);

	while (count && job_request_capacity(s->req, cores, list[count - 1].node) == tasks)
		count--;
	return !count;
}

/*
 * From 25.05 on, Slurm gives a node at most as many tasks of a job with devices as it has devices near free cores,
 * which are few in one domain, unless the job states the tasks per node (_foreach_gres_filter_sock_core() of
 * topology/common). So even shares are tried as if it had. Those of a path are not left to Slurm, which fills one
 * node's threads after another: tasks that are left need fewer cores of the last. Unless the path has no room for more:
 * stated tasks of devices that leave a thread of their last core, Slurm takes on no node, since it rounds a node's CPUs
 * down to whole tasks before it takes whole cores off (gres_select_filter_sock_core()).
 */
static bool offer(struct attempt *a, struct candidate_set *s, const struct candidate_node *list, unsigned count,
		  unsigned nodes)
{
	bool path = s->req->request.path.steps, even = ((GLUE_GRES_NEAR && s->job->gres_list_req) || path) && nodes &&
		    !s->job->details->ntasks_per_node && s->req->tasks % nodes == 0;

	return (even && offer_shares(a, s, list, count, nodes, s->req->tasks / nodes)) ||
	       (!(even && path && !path_is_full(s, list, count, s->req->tasks / nodes)) &&
		offer_shares(a, s, list, count, nodes, 0));
}

/* For --contiguous: the most of these nodes in a row; otherwise all of them. */
static unsigned longest_row(const struct candidate_set *s, const struct candidate_node *list, unsigned count)
{
	bitstr_t *in = s->job->details->contiguous ? bit_alloc(node_record_count) : NULL;
	unsigned row = 0, longest = in ? 0 : count;
	int last = -1;

	for (unsigned i = 0; in && i < count; i++)
		bit_set(in, list[i].node);
	for (int i = in ? glue_next(in, 0) : -1; i >= 0; last = i, i = glue_next(in, i + 1)) {
		row = i == last + 1 ? row + 1 : 1;
		longest = MAX(longest, row);
	}
	FREE_NULL_BITMAP(in);
	return longest;
}

/* An offer that others may substitute: within the budget. */
static bool offer_within_budget(struct attempt *a, struct candidate_set *s, const struct candidate_node *list,
				unsigned count, unsigned nodes)
{
	return longest_row(s, list, count) >= nodes && budget_draw(&s->budget, count) &&
	       offer(a, s, list, count, nodes);
}

static bool offer_plan(struct attempt *a, struct candidate_set *s, const struct plan *p)
{
	return offer_within_budget(a, s, p->choice.list, p->choice.count, p->choice.count);
}

static bool is_uneven(const struct attempt *a, const struct candidate_set *s)
{
	return s->req->share[1].nodes && !a->plan.choice.uneven && s->nodes == a->call->nodes &&
	       plan_slurm_picks_nodes(s);
}

/*
 * Slurm chooses nodes among all candidates for either share; then these are divided among the shares. When the job
 * cannot have what Slurm chooses, only the budget has changed.
 */
static bool either_share(struct attempt *a, struct candidate_set *s)
{
	const struct call *c = a->call;
	struct chooser_share share[] = { s->req->share[0], s->req->share[1] };
	bool fresh = a->preemptees && c->preempted && !*c->preempted, good;
	struct candidate_set either = *s;
	struct plan plan = {0};
	bitstr_t *all;

	if (!(either.list = candidates_list_new()))
		return false;
	all = bit_copy(c->nodes);
	candidates_find(&either, share[0].tasks, share[1].tasks, NULL);
	good = offer_within_budget(a, &either, either.list, either.count, share[0].nodes + share[1].nodes);
	if (good && starts_now(a)) {
		if (fresh)
			FREE_NULL_LIST(*c->preempted);
		good = plan_make(&plan, &either) && offer_plan(a, &either, &plan);
	}
	s->budget = either.budget;
	if (good && starts_now(a)) {
		plan_end(&a->plan);
		free(s->list);
		a->plan = plan;
		*s = either;
	} else {
		plan_end(&plan);
		free(either.list);
	}
	if (!good) {
		bit_copybits(c->nodes, all);
		memcpy(s->req->share, share, sizeof(share));
	}
	FREE_NULL_BITMAP(all);
	return good;
}

static bool has_even_shares(const struct attempt *a, const struct candidate_set *s)
{
	return a->plan.choice.count && !a->plan.choice.uneven && !s->req->share[1].nodes &&
	       a->plan.choice.count == s->req->share[0].nodes;
}

/* In a network those of one leaf. */
static bool best_nodes(struct attempt *a, struct candidate_set *s)
{
	bool slurm_picks = has_even_shares(a, s) && plan_slurm_picks_nodes(s);

	return a->plan.choice.count && (!slurm_picks || plan_in_leaf(&a->plan, s)) && offer_plan(a, s, &a->plan);
}

/* Slurm may choose among all that fit, each with its best cores. */
static bool all_nodes(struct attempt *a, struct candidate_set *s)
{
	unsigned nodes = a->plan.choice.count;

	return s->count > (plan_slurm_picks_nodes(s) ? nodes - 1 : nodes) &&
	       offer_within_budget(a, s, s->list, s->count, nodes);
}

/*
 * Of --gpus with --cpus-per-gpu Slurm before 24.11 counts no more devices on a node than there are CPUs for when it has
 * taken off the cores that neither the tasks nor the devices near them need (gres_select_filter_sock_core()). For as
 * many tasks as the cores have room for it takes none off.
 */
static bool needs_far_devices(const struct attempt *a, const struct candidate_set *s)
{
	unsigned count = a->plan.choice.count;

	/* A path has no more cores than the devices of each node need. */
	return GLUE_COUNTS_DEVICES_ONCE && count && s->req->device_cpus && job_request_waits(s->req) &&
	       (!s->req->request.path.steps || s->req->devices % count == 0);
}

static bool far_devices(struct attempt *a, struct candidate_set *s)
{
	const struct candidate_node *list = a->plan.choice.list;
	unsigned count = a->plan.choice.count;
	uint32_t room = UINT32_MAX;

	for (unsigned i = 0; i < count; i++)
		room = MIN(room, job_request_capacity(s->req, list[i].need_cores, list[i].node));
	return budget_draw(&s->budget, count) && offer_shares(a, s, list, count, count, room);
}

/* Whether the largest domain of each node is a choice: not for a path, nor where each task is to have its own. */
static bool domains_satisfy(const struct attempt *a, const struct candidate_set *s)
{
	const struct job_request *req = s->req;

	(void) a;
	return !s->no_steps &&
	       (req->request.fit == FIT_REQUIRE ||
		(req->request.fit == FIT_PREFER && req->request.memory == FIT_REQUIRE)) &&
	       !req->request.path.steps && !req->whole_nodes;
}

/*
 * Whatever else the job requests of Slurm, and however Slurm distributes the tasks: offers the largest domain of each
 * node, near the devices if possible. A path has a fixed number of cores on each node, and no other distribution. The
 * last attempt is made even if the budget is used up. Of the cores that Slurm took within the domains, the best are
 * offered then; if the job cannot have these, it keeps what Slurm took.
 */
static bool largest_domains(struct attempt *a, struct candidate_set *s)
{
	unsigned nodes = 0, most;
	bool good = false, tried;
	uint64_t left;

	for (int near = s->devices.name != NULL; !good && near >= 0; near--) {
		struct job_holding h;

		s->local_only = near;
		h = candidates_domains(s);
		if (s->req->unweighed && !s->taken)
			s->room = s->count;
		if (!job_request_may_hold(s->req, &h) || !(budget_draw(&s->budget, s->count) || (a->last && !near)))
			continue;
		good = offer(a, s, s->list, s->count, 0);
		/*
		 * For a job with devices on any number of nodes: from 25.05 on, Slurm counts only devices whose own
		 * socket has cores for the job (_foreach_gres_filter_sock_core() of topology/common), which are few in
		 * one domain, unless the number of nodes is given.
		 */
		most = a->call->job->gres_list_req ? MIN(longest_row(s, s->list, s->count), s->req->max_nodes) : 0;
		for (unsigned n = s->req->min_nodes; !good && n <= most && budget_draw(&s->budget, s->count); n++)
			if ((good = offer(a, s, s->list, s->count, n)))
				nodes = n;
	}
	s->local_only = false;
	if (!good || !starts_now(a))
		return good;
	left = s->budget.offers;
	good = plan_given(&a->plan, s) && offer_plan(a, s, &a->plan);
	tried = s->budget.offers != left;
	s->room = s->count;
	if (good)
		comment_placed(a->call->job, s->req, s, &a->plan);
	plan_end(&a->plan);
	if (good || (tried && !offer(a, s, s->list, s->count, nodes)))
		return good;
	comment_reason(a->call->job, s->req, s, VERDICT_LEFT,
		       "the nodes satisfy the requirement; Slurm chose the cores within each domain");
	return true;
}

/* What Slurm's plugin is offered, in this order, until it accepts. */
static const struct {
	bool planned;		/* by a plan of Topiary's (plan.h), for jobs whose nodes and shares it weighs */
	bool (*applies)(const struct attempt *a, const struct candidate_set *s);	/* NULL: always */
	bool (*make)(struct attempt *a, struct candidate_set *s);
} attempts[] = {
	{ true, is_uneven, either_share },
	{ true, NULL, best_nodes },
	{ true, has_even_shares, all_nodes },
	{ true, needs_far_devices, far_devices },
	{ false, domains_satisfy, largest_domains },
};

static bool attempts_make(struct attempt *a, struct candidate_set *s, bool planned)
{
	bool good = false;

	if (planned) {
		if (budget_exhausted(&s->budget))
			return false;
		good = plan_make(&a->plan, s);
		if (!s->taken)
			s->room = a->plan.choice.uneven ? a->plan.choice.uneven : s->count;
		if (!good) {
			plan_end(&a->plan);
			return false;
		}
		good = false;
	}
	for (size_t i = 0; !good && i < sizeof(attempts) / sizeof(attempts[0]); i++)
		good = attempts[i].planned == planned && (!attempts[i].applies || attempts[i].applies(a, s)) &&
		       attempts[i].make(a, s);
	if (planned && good && starts_now(a))
		comment_placed(a->call->job, s->req, s, &a->plan);
	if (planned)
		plan_end(&a->plan);
	return good;
}

/*
 * What the job gives up stays given up for this decision: no job is preempted for what is only preferred, and the
 * estimated start is the first at which the requirement can be met.
 */
static bool place(void *user, struct candidate_set *s, bool last)
{
	struct attempt *a = user;

	a->last = last;
	do {
		s->need = (struct candidate_tasks){0};
		if ((!s->req->unweighed && attempts_make(a, s, true)) ||
		    (!s->req->own_cores && attempts_make(a, s, false)))
			return true;
	} while (job_request_relax(s->req));
	return false;
}

/* A required placement may preempt jobs; a preferred one never does. */
static bool place_preempting(struct attempt *a, struct candidate_set *s)
{
	uint64_t *taken = a->call->preemptees ? occupancy_copy() : NULL;
	slurm_iterator_t it;
	job_record_t *job;
	bool good;

	if (!taken)
		return false;
	it = list_iterator_create(a->call->preemptees);
	while ((job = list_next(it)))
		occupancy_without(job, taken);
	list_iterator_destroy(it);
	s->taken = taken;
	a->preemptees = a->call->preemptees;
	good = place(a, s, true);
	a->preemptees = NULL;
	s->taken = NULL;
	free(taken);
	return good;
}

/* --- decisions --- */

/*
 * Appends the requirement in words: "2 nodes with 8 cores in one L3 cache", where the number of cores is that for the
 * first node searched; if the job may have several numbers of nodes, "16 tasks of 1 CPU, those of each node in one L3
 * cache".
 */
static void add_requirement(const struct candidate_set *s, struct buf *out)
{
	const struct job_request *req = s->req;
	bool required = req->request.fit == FIT_REQUIRE, each = req->min_nodes != req->max_nodes;
	struct chooser_share share[2];
	struct score_need need = {0};
	unsigned of_devices = device_cpus(s->job), cpus = of_devices ? of_devices : req->cpus_per_task;
	int first = glue_next(s->nodes, 0);
	char path[128];

	shares_divide(share, req->tasks, req->min_nodes);
	if (first >= 0)
		job_request_need(req, share[0].tasks, first, &need);
	each |= !need.cores;
	if (each)
		buf_printf(out, of_devices ? "%u task%s with %u CPU%s for each GPU" : "%u task%s of %u CPU%s",
			   req->tasks, PLURAL(req->tasks), cpus, PLURAL(cpus));
	else
		buf_printf(out, "%u node%s with %s%u core%s", req->min_nodes, PLURAL(req->min_nodes),
			   share[1].nodes ? "up to " : "", need.cores, PLURAL(need.cores));
	if (request_path_text(&req->request.path, path, sizeof(path)))
		buf_printf(out, "%s at %s", each ? ", those of each node" : "", path);
	else if (required && req->request.level != LEVEL_NODE)
		buf_printf(out, "%s in one %s", each ? ", those of each node" : "",
			   level_noun(node_shape_level(first < 0 ? NULL : node_shape(first), req->request.level), 1));
	if (req->request.memory == FIT_REQUIRE)
		buf_printf(out, " and %llu MB%s free in their NUMA nodes", (unsigned long long)
			   (each ? req->memory : job_request_memory(req, share[0].tasks)),
			   each && req->memory_per_cpu ? " for each CPU" : "");
}

/* Appends what else than other jobs keeps nodes from being chosen. */
static void add_obstacles(const struct candidate_set *s, struct buf *out)
{
	const part_record_t *part = s->job->part_ptr;
	int node = candidates_unknown(s);

	if (!s->candidates)
		buf_puts(out, "; Slurm offers no node now");
	if (node >= 0) {
		buf_puts(out, "; ");
		node_difference_text(node_record_table_ptr[node], node_shape_of_snapshot(node), out);
	} else if ((node = candidates_capped(s)) >= 0)
		buf_printf(out, "; jobs of partition %s have %u CPU%s of node %s, with MaxCPUsPerNode=%u", part->name,
			   candidates_partition_cpus(s, node), PLURAL(candidates_partition_cpus(s, node)),
			   node_record_table_ptr[node]->name,
			   part->max_cpus_per_node);
}

static void debug_job(const job_record_t *job, const char *what)
{
	debug("topiary: JobId=%u: %s", job->job_id, what);
}

static int leave_to_slurm(const struct call *c, const struct job_request *req, const struct candidate_set *s,
			  const char *why)
{
	int rc = call_inner(c, c->nodes, c->preemptees, c->excluded);

	/* Where the site has switched placement off, most jobs need no verdict. */
	if (rc == SLURM_SUCCESS && SELECT_IS_MODE_RUN_NOW(c->mode) && (req->request.fit != FIT_OFF || req->asked))
		comment_reason(c->job, req, s, VERDICT_LEFT, why);
	debug_job(c->job, why);
	return rc;
}

#define FEWER_GPUS_FIRST \
	"the best placement has fewer GPUs on its first nodes, where Slurm starts more tasks of a step"

/* A job whose cores Slurm's plugin did not take. */
static void add_refused(const struct call *c, struct buf *out)
{
	buf_printf(out, "Slurm did not start it on the cores chosen for it%s", c->job->bit_flags & GRES_ENFORCE_BIND ?
		   " (--gres-flags=enforce-binding: only cores near its gres)" : "");
}

/* A job whose requirement cannot be met now: planned for later, or made to wait. */
static int wait_for(struct attempt *a, struct candidate_set *s)
{
	const struct call *c = a->call;
	bool refused = a->refused, no_steps = s->no_steps;
	struct buf reason = {0};

	a->later = true;
	if (SELECT_IS_MODE_WILL_RUN(c->mode) && !(c->job->bit_flags & TEST_NOW_ONLY) &&
	    start_estimate_find(s, place, a))
		return SLURM_SUCCESS;
	buf_puts(&reason, candidates_cache.refused ? "not all nodes have been scored yet for " : "it requires ");
	add_requirement(s, &reason);
	if (s->req->unweighed)
		buf_printf(&reason, "; within that Slurm decides: %s", s->req->unweighed);
	if (refused && !s->req->unweighed) {
		buf_puts(&reason, "; ");
		add_refused(c, &reason);
	}
	if (no_steps)
		buf_puts(&reason, "; " FEWER_GPUS_FIRST);
	add_obstacles(s, &reason);
	comment_reason(c->job, s->req, s, VERDICT_WAITS, reason.failed ? "slurmctld is out of memory" : reason.data);
	debug_job(c->job, reason.failed ? "out of memory" : reason.data);
	buf_free(&reason);
	return SLURM_ERROR;
}

static int job_decide(const struct call *c, struct candidate_set *s)
{
	struct attempt a = { .call = c };
	struct buf why = {0};
	int rc;

	if (place(&a, s, true) || (job_request_waits(s->req) && place_preempting(&a, s)))
		return SLURM_SUCCESS;
	if (job_request_waits(s->req))
		return wait_for(&a, s);
	if (s->budget.refused || candidates_cache.refused)
		buf_puts(&why, "the search for a topology-aware placement was cut short to keep the decision about as"
			       " cheap as that of Slurm");
	else if (s->unknown && s->unknown == s->candidates)
		buf_puts(&why, "the snapshot has none of its nodes, or different hardware for them");
	else if (a.refused)
		add_refused(c, &why);
	else if (s->no_steps)
		buf_puts(&why, FEWER_GPUS_FIRST);
	else if (s->req->request.fit == FIT_SPREAD)
		buf_printf(&why, "its tasks cannot be spread over %s now", level_noun(s->req->request.level ==
			   LEVEL_NODE ? LEVEL_L3 : s->req->request.level, 2));
	else
		buf_puts(&why, NO_PLACEMENT);
	if (s->unknown != s->candidates)
		add_obstacles(s, &why);
	rc = leave_to_slurm(c, s->req, s, why.failed ? "slurmctld is out of memory" : why.data);
	buf_free(&why);
	return rc;
}

/* A requirement that can never be met: logged here; submitted_check reports it to the user. */
static int job_refuse(const struct call *c, const char *why)
{
	info("topiary: JobId=%u: refused: its requirement can never be met: %s", c->job->job_id, why);
	return SLURM_ERROR;
}

/* Whether a job with a requirement can ever run. Slurm only looks at counts, so the requirement is checked first. */
static int test_only(const struct call *c, struct candidate_set *s)
{
	struct buf text = {0};
	bool can;

	do {
		s->need = (struct candidate_tasks){0};
		can = start_estimate_possible(s);
	} while (!can && job_request_relax(s->req));
	if (!can && candidates_unknown(s) < 0 && !candidates_cache.refused) {
		add_requirement(s, &text);
		job_refuse(c, text.failed ? "out of memory" : text.data);
		buf_free(&text);
		return SLURM_ERROR;
	}
	return call_inner(c, c->nodes, c->preemptees, c->excluded);
}

/* Without a snapshot it is unknown whether a requirement can be met: the site decides what to do (WithoutSnapshot). */
static int without_snapshot(const struct call *c, const struct job_request *req)
{
	bool wait = job_request_waits(req) && !strcasecmp(settings.without_snapshot, "wait");

	if (wait && !SELECT_IS_MODE_TEST_ONLY(c->mode)) {
		comment_reason(c->job, req, NULL, VERDICT_WAITS, "there is no snapshot");
		debug_job(c->job, "it requires a placement and waits for a snapshot");
		return SLURM_ERROR;
	}
	if (job_request_waits(req) && SELECT_IS_MODE_RUN_NOW(c->mode))
		info("topiary: JobId=%u: it requires a placement, but there is no snapshot: left to "
		     "Slurm (WithoutSnapshot=run)",
		     c->job->job_id);
	return leave_to_slurm(c, req, NULL, "no snapshot");
}

/* Slurm's plugin gets what it would get without Topiary, and its answer stands. */
static int job_observe(const struct call *c)
{
	static bitstr_t *offered;
	struct job_request req;
	const char *why;
	int rc;

	if (!offered || bit_size(offered) != bit_size(c->nodes)) {
		FREE_NULL_BITMAP(offered);
		offered = bit_copy(c->nodes);
	} else {
		bit_copybits(offered, c->nodes);
	}
	why = job_request_read(c->job, &site, c->min_nodes, c->max_nodes, c->req_nodes, &req);
	rc = call_inner(c, c->nodes, c->preemptees, c->excluded);
	if (rc == SLURM_SUCCESS)
		observe_decided(c->job, &req, why, offered, c->excluded);
	return rc;
}

static int job_steer(const struct call *c, struct job_request *req, struct snapshot_view *v)
{
	bool test = SELECT_IS_MODE_TEST_ONLY(c->mode);
	bitstr_t *required = c->job->details->req_node_bitmap;
	uint32_t most = req->any_nodes ? req->max_nodes : MAX(req->first, req->last);
	/* If the job names as many nodes as it may have, no other node is searched. */
	bool named = required && (uint32_t) bit_set_count(required) >= most;
	struct candidate_set s = { .job = c->job, .req = req, .nodes = named ? required : c->nodes,
			   .excluded = test ? NULL : c->excluded, .starts = SELECT_IS_MODE_RUN_NOW(c->mode),
			   .spare_gpus = !strcasecmp(settings.topo_gpu_cores, "spare") };
	bool ready;
	int rc;

	fit_cache_begin(&candidates_cache, snapshot_view_serial(v));
	ready = !occupancy_sync() && !node_shapes_begin(v) && !candidates_begin(&s);
	if (!ready)
		error("topiary: JobId=%u: out of memory: the job is placed as without Topiary", c->job->job_id);
	rc = !ready ? leave_to_slurm(c, req, NULL, "slurmctld had no memory to choose a placement") :
	     test ? test_only(c, &s) : job_decide(c, &s);
	if (ready && rc == SLURM_SUCCESS && SELECT_IS_MODE_RUN_NOW(c->mode) && !glue_reserves_devices(c->excluded))
		device_grant_choose(c->job);
	candidates_end(&s);
	return rc;
}

void steer_starting(job_record_t *job)
{
	if (mode_of(job) == MODE_OBSERVE)
		observe_starting(job);
}

void steer_started(job_record_t *job)
{
	bool on = mode_of(job) == MODE_ON;
	struct snapshot_view *v = on && device_wants_gpus(job) ? snapshot_view_get() : NULL;
	struct device_distance d = {0};

	occupancy_add(job);
	if (v && !node_shapes_begin(v))
		d = device_distance(job);
	if (v)
		snapshot_view_release(v);
	/*
	 * Its steps distribute its cores by that. Not before: the rest of an array has been split off by now. Where
	 * each task has a GPU, Slurm then divides the tasks among the nodes by cores of all threads instead of by GPUs.
	 */
	if (on && comment_started(job, &d) && device_even(job))
		job->details->mc_ptr->ntasks_per_core = 1;
}

/*
 * What the job got is obsolete: the verdict of a finished run, and the setting that its tasks had cores of their own.
 */
static void forget_run(job_record_t *job, bool waits)
{
	if (comment_clear(job, waits) && job->details && job->details->mc_ptr)
		job->details->mc_ptr->ntasks_per_core = INFINITE16;
}

void steer_ended(job_record_t *job)
{
	occupancy_drop(job);
	if (started && (IS_JOB_PENDING(job) || job->job_state & (JOB_REQUEUE | JOB_REQUEUE_HOLD | JOB_SPECIAL_EXIT)))
		forget_run(job, true);
}

int steer_job_test(slurm_job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,
		   uint32_t req_nodes, uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted,
		   slurm_exclusion_t *excluded WILL_RUN_PARM)
{
	struct call call = {
		.inner = inner, .job = job, .nodes = nodes, .mode = mode, .preemptees = preemptees,
		.preempted = preempted, .excluded = excluded, .min_nodes = min_nodes, .max_nodes = max_nodes,
		.req_nodes = req_nodes,
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
		.will_run = will_run,
#endif
	};
	struct snapshot_view *v;
	const char *why;
	struct job_request req;
	int rc, does;

	if (has_placed && job->magic == JOB_MAGIC && SELECT_IS_MODE_RUN_NOW(mode))
		device_grant_forget(job);
	if (!started || SELECT_IS_MODE_RESV(mode) || SELECT_IS_PREEMPT_ON_FULL_TEST(mode))
		return inner JOB_TEST_ARGS;
	if (!partitions_checked)
		partitions_check();
	does = mode_of(job);
	/* A verdict from before TopoMode was changed is no longer true. */
	if (job->magic == JOB_MAGIC && IS_JOB_PENDING(job))
		forget_run(job, does != MODE_ON);
	if (does == MODE_OFF || (does == MODE_OBSERVE && !SELECT_IS_MODE_RUN_NOW(mode)))
		return inner JOB_TEST_ARGS;
	if (does == MODE_OBSERVE)
		return job_observe(&call);
	why = job_request_read(job, &site, min_nodes, max_nodes, req_nodes, &req);
	if (SELECT_IS_MODE_TEST_ONLY(mode) && !job_request_waits(&req))
		return inner JOB_TEST_ARGS;
	if (why)
		return SELECT_IS_MODE_TEST_ONLY(mode) && (req.asked || req.asked_memory) ?
			       job_refuse(&call, why) : leave_to_slurm(&call, &req, NULL, why);
	if (!(v = snapshot_view_get()))
		return without_snapshot(&call, &req);
	rc = job_steer(&call, &req, v);
	snapshot_view_release(v);
	return rc;
}

/* NULL if Topiary may place the job in one of its partitions; else why not. */
static const char *mode_excludes(const job_desc_msg_t *job)
{
	char *names = xstrdup(job->partition ? job->partition : default_part_loc ? default_part_loc->name : ""), *name;
	const char *why = site_mode == MODE_ON ? NULL : "TopoMode=observe in slurmctld's topiary.conf";

	for (char *rest = names; site_mode == MODE_ON && (name = strsep(&rest, ","));)
		if (!(why = settings_mode_excludes(&settings, name, job->qos, job->account)))
			break;
	xfree(names);
	return why;
}

__attribute__((visibility("default"))) int topiary_submitted(const job_desc_msg_t *job, struct err *e)
{
	struct snapshot_view *v;
	const char *why = idle ? idle : mode_excludes(job);
	int rc;

	if (why) {
		*e->text = '\0';
		/* A job without a name of its own will have its user's default QOS and account, which may be meant. */
		if (idle || site_mode != MODE_ON || ((job->qos || !*settings.topo_qos) &&
						     (job->account || !*settings.topo_accounts)))
			submitted_ignored(job, why, e);
		return SUBMITTED_INACTIVE;
	}
	v = snapshot_view_get();
	rc = submitted_check(job, &site, v, e);
	snapshot_view_release(v);
	return rc;
}
