/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "candidates.h"

#include "occupancy.h"
#include "score/numa_memory.h"

struct fit_cache candidates_cache;

/*
 * Kept between decisions: what they need grows with the nodes, and each large block that is allocated and freed costs
 * as much as many nodes.
 */
static struct {
	int nodes;
	struct fit_memo *memos;		/* by node */
	struct candidate_node *list;	/* NULL while a decision has it */
} kept;

void candidates_clear(void)
{
	free(kept.memos);
	free(kept.list);
	memset(&kept, 0, sizeof(kept));
	fit_cache_clear(&candidates_cache);
}

struct candidate_node *candidates_list_new(void)
{
	return malloc((node_record_count + 1) * sizeof(struct candidate_node));
}

static int kept_begin(struct candidate_set *s)
{
	if (kept.nodes != node_record_count) {
		candidates_clear();
		kept.memos = calloc(node_record_count + 1, sizeof(*kept.memos));
		kept.nodes = kept.memos ? node_record_count : 0;
	}
	s->list = kept.list ? kept.list : candidates_list_new();
	kept.list = NULL;
	return kept.memos && s->list ? 0 : -1;
}

/*
 * Nodes with the same free cores and devices have the same choice, and there are many: 16 of them are kept for the
 * decision. The free cores follow, then the groups' sets.
 */
#define NEAR_MEMOS 16u

struct near_memo {
	struct near_key {
		const struct shape *shape;
		struct score_task task;
		unsigned cores, task_cores, fit, level, want, groups, devices[DEVICE_SHARES_MAX];
	} key;
	const struct score_cost *cost;
	struct node_fit *fit;
	unsigned unserved, sets;
	uint64_t seen[];
};

static size_t memo_size(void)
{
	return sizeof(struct near_memo) + (occupancy_node_words() + 1) * (DEVICE_SHARES_MAX + 1) * sizeof(uint64_t);
}

/* In minutes, as Slurm sets it when the job starts; 0: none. */
static uint32_t time_limit(const job_record_t *job)
{
	const part_record_t *part = job->part_ptr;

	if (job->time_limit != NO_VAL || !part)
		return glue_known(job->time_limit, 0);
	return glue_known(part->default_time == NO_VAL ? part->max_time : part->default_time, 0);
}

int candidates_begin(struct candidate_set *s)
{
	unsigned most = occupancy_node_words();

	s->limits_max = most * 64 / 2;
	s->gpus = glue_wants_gpus(s->job);
	s->queue_first = request_queue_first(&s->req->request, time_limit(s->job));
	s->spare_gpus &= !device_wants_gpus(s->job);
	device_locality_read(s->job->gres_list_req, s->job->bit_flags & JOB_MEM_SET, s->nodes, s->req, &s->devices);
	s->candidates = bit_set_count((bitstr_t *) s->nodes);
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		s->unknown += node_record_table_ptr[i] && !node_shape(i);
	candidates_budget(s);
	s->free_cores = malloc((most + 1) * sizeof(*s->free_cores));
	s->sets = malloc((most + 1) * (DEVICE_SHARES_MAX + 2) * sizeof(*s->sets));
	s->limits = malloc((s->limits_max + 1) * sizeof(*s->limits));
	s->near = s->devices.name ? calloc(NEAR_MEMOS, memo_size()) : NULL;
	s->of_partition = s->job->part_ptr && glue_known(s->job->part_ptr->max_cpus_per_node, 0) ?
		occupancy_of_partition(s->job->part_ptr) : NULL;
	return !kept_begin(s) && s->free_cores && s->sets && s->limits ? 0 : -1;
}

void candidates_budget(struct candidate_set *s)
{
	s->budget = budget_new(s->candidates);
	fit_cache_allow(&candidates_cache, BUDGET_SCORES(s->candidates));
}

void candidates_end(struct candidate_set *s)
{
	if (s->list)
		kept.list = s->list;
	free(s->free_cores);
	free(s->sets);
	free(s->limits);
	free(s->near);
	free(s->of_partition);
}

/* usable: NULL for all cores. */
static void keep_usable(uint64_t *cores, const bitstr_t *usable, unsigned ncores)
{
	for (unsigned c = 0; usable && c < ncores; c++)
		if (!bit_test((bitstr_t *) usable, c))
			core_set_remove(cores, c);
}

void candidates_keep_usable(int node, bool gpus, uint64_t *cores)
{
	keep_usable(cores, node_record_table_ptr[node]->node_spec_bitmap, glue_cores(node));
	keep_usable(cores, gpus ? NULL : glue_without_gpus(node), glue_cores(node));
}

static const uint64_t *taken_on(const struct candidate_set *s, int node)
{
	return s->taken ? s->taken + occupancy_at(node) : occupancy_busy(node);
}

/*
 * Reads the cores that the job may have on a node: not allocated, excluded, specialised or reserved for GPUs. Returns
 * their number.
 */
static unsigned read_free(const struct candidate_set *s, int node)
{
	unsigned cores = glue_cores(node);

	core_set_complement(s->free_cores, taken_on(s, node), cores);
	candidates_keep_usable(node, s->gpus, s->free_cores);
	exclusion_apply(s->excluded, node, s->free_cores);
	return core_set_count(s->free_cores, core_set_words(cores));
}

/* The job's memory on a node, in MB; 0: none is counted. */
static uint64_t memory_on(const struct candidate_set *s, int node, uint32_t tasks)
{
	uint64_t of_devices = device_memory(&s->devices, s->req, tasks, node);

	return of_devices ? of_devices : job_request_memory(s->req, tasks);
}

static bool has_memory(const struct candidate_set *s, int node, uint64_t wanted)
{
	const node_record_t *n = node_record_table_ptr[node];

	/* Of jobs that do not say how much, Slurm gives each all memory of its nodes. */
	if (!wanted)
		return !s->req->counts_memory || s->taken || !occupancy_memory(node);
	return wanted + n->mem_spec_limit + (s->taken ? 0 : occupancy_memory(node)) <= n->real_memory;
}

uint32_t candidates_partition_cpus(const struct candidate_set *s, int node)
{
	return s->of_partition[node] * node_record_table_ptr[node]->tpc;
}

/* The most tasks that so many free cores of a node hold, within what MaxCPUsPerNode leaves to the partition there. */
static uint32_t tasks_on(const struct candidate_set *s, unsigned cores, int node)
{
	uint32_t most = job_request_capacity(s->req, cores, node), limit, used;

	if (!s->of_partition)
		return most;
	limit = s->job->part_ptr->max_cpus_per_node;
	used = s->taken ? 0 : candidates_partition_cpus(s, node);
	return used + s->req->min_cpus > limit ? 0 : MIN(most, (limit - used) / s->req->cpus_per_task);
}

/* Whether a node keeps cores for the GPUs that the job is to get, which are not all of the node's. */
static bool keeps_cores(const struct candidate_set *s, int node)
{
	return s->devices.name && !strcasecmp(s->devices.name, "gpu") && !s->req->whole_nodes &&
	       glue_without_gpus(node);
}

/*
 * Leaves of the cores kept for GPUs those that the job's own GPUs may have. With others Slurm (24.11 to 26.05) finds
 * no GPU for them on their socket, logs an error, and starts the job without any.
 */
static void keep_for_own(const struct candidate_set *s, int node, const struct device_share *shares, unsigned n,
			 uint64_t *cores)
{
	const bitstr_t *open = keeps_cores(s, node) ? glue_without_gpus(node) : NULL;
	unsigned words = core_set_words(glue_cores(node)), at = 0, left = 0;

	if (!open)
		return;
	core_set_each(c, cores, words) {
		for (; at < n && (unsigned) c >= shares[at].first; at++)
			left = shares[at].devices * glue_cores_per_gpu(node);
		if (bit_test((bitstr_t *) open, c))
			continue;
		if (left)
			left--;
		else
			core_set_remove(cores, c);
	}
}

/* The cheapest of the node's sets of devices. shared: each device has its share of the tasks near it. */
static const struct score_cost *cost_of_sets(struct candidate_set *s, const struct shape *shape,
					     const struct score_need *need, const struct device_groups *groups,
					     const struct device_set *sets, unsigned n, bool shared,
					     struct candidate_node *candidate)
{
	unsigned words = core_set_words(shape->cores), want = device_count(&s->devices, candidate->tasks);
	uint64_t *cores = s->sets + DEVICE_SHARES_MAX * words;
	const struct score_cost *best = NULL, *c;
	struct device_share shares[DEVICE_SHARES_MAX];
	struct node_fit *found;

	for (unsigned i = 0; i < n && (!best || sets[i].unserved <= candidate->devices_unserved); i++) {
		unsigned nshares = device_choice_shares(groups, &sets[i], want, s->free_cores, words, cores, shares);
		struct score_need own = *need;

		keep_for_own(s, candidate->node, shares, nshares, cores);
		if (shared)
			own.nlimits = device_share_limits(shape, cores, need, shares, nshares, s->limits);
		if (own.nlimits)
			own.limits = s->limits;
		else
			own = *need;
		c = fit_cost(&candidates_cache, shape, cores, &own, &found);
		if (!c || (best && score_compare(c, best) >= 0))
			continue;
		best = c;
		candidate->fit = found;
		candidate->devices_unserved = sets[i].unserved;
	}
	return best;
}

/* The memo that a node has or may have; NULL: none. *known: it has it. */
static struct near_memo *memo_find(struct candidate_set *s, const struct near_key *key, const struct device_groups *g,
				   bool *known)
{
	unsigned words = core_set_words(key->shape->cores);
	uint64_t hash = key->groups;
	struct near_memo *m;

	if (!s->near)
		return NULL;
	for (unsigned w = 0; w < words; w++)
		hash = (hash ^ s->free_cores[w]) * 0x9e3779b97f4a7c15u;
	m = (struct near_memo *) ((char *) s->near + (hash >> 60) % NEAR_MEMOS * memo_size());
	*known = !memcmp(&m->key, key, sizeof(*key)) && !memcmp(m->seen, s->free_cores, words * sizeof(*m->seen)) &&
		 !memcmp(m->seen + words, g->cores, g->n * words * sizeof(*m->seen));
	if (!*known) {
		m->key = *key;
		memcpy(m->seen, s->free_cores, words * sizeof(*m->seen));
		memcpy(m->seen + words, g->cores, g->n * words * sizeof(*m->seen));
	}
	return m;
}

/*
 * Of --gpus with CPUs for each, an equal share, by which the node's cores are counted (job_request_need), if it has so
 * many: Slurm counts devices whose own socket has cores for them.
 */
static unsigned devices_wanted(const struct candidate_set *s, unsigned want, const struct device_groups *groups)
{
	unsigned nodes = s->req->share[0].nodes + s->req->share[1].nodes, have = 0;

	for (unsigned i = 0; i < groups->n; i++)
		have += groups->devices[i];
	return s->req->device_cpus && nodes ? MAX(want, MIN(have, (s->req->devices + nodes - 1) / nodes)) : want;
}

/* *known: there are sets of cores near the node's devices. */
static const struct score_cost *cost_near(struct candidate_set *s, const struct shape *shape,
					  const struct score_need *need, struct candidate_node *candidate,
					  bool *known)
{
	unsigned want = device_count(&s->devices, candidate->tasks), n;
	bool limited = need->nlimits || (need->path && need->path->steps) || keeps_cores(s, candidate->node);
	bool seen = false;
	struct device_set sets[DEVICE_SHARES_MAX];
	struct device_groups groups;
	const struct score_cost *c;
	struct near_memo *m;
	struct near_key key;

	device_groups_read(&s->devices, candidate->tasks, candidate->node, shape, s->sets, &groups);
	want = devices_wanted(s, want, &groups);
	key = (struct near_key){ .shape = shape, .cores = need->cores, .task_cores = need->task_cores,
				 .task = need->task, .fit = need->fit, .level = need->level, .want = want,
				 .groups = groups.n };
	memcpy(key.devices, groups.devices, groups.n * sizeof(*groups.devices));
	m = limited ? NULL : memo_find(s, &key, &groups, &seen);
	if (seen) {
		*known = m->sets;
		candidate->fit = m->fit;
		candidate->devices_unserved = m->unserved;
		return m->cost;
	}
	n = device_choice_sets(shape, &groups, want, s->free_cores, need, sets);
	*known = n;
	if (!(c = cost_of_sets(s, shape, need, &groups, sets, n, true, candidate)))
		c = cost_of_sets(s, shape, need, &groups, sets, n, false, candidate);
	if (m) {
		m->cost = c;
		m->fit = candidate->fit;
		m->unserved = candidate->devices_unserved;
		m->sets = n;
	}
	return c;
}

/*
 * The best of a set's cores for a part of the job's tasks, or cores, in their place, within the limits; false: there
 * are not so many.
 */
static bool keep_best(const struct shape *shape, const struct score_need *need, unsigned cores, uint64_t *set)
{
	struct score_need part = { .cores = cores, .task_cores = need->task_cores, .task = need->task,
				   .fit = FIT_PREFER, .limits = need->limits, .nlimits = need->nlimits };
	const uint64_t *best;
	struct node_fit *fit;

	if (!fit_cost(&candidates_cache, shape, set, &part, &fit) || !(best = fit_cores(&candidates_cache, fit, cores)))
		return false;
	memcpy(set, best, core_set_words(shape->cores) * sizeof(*set));
	return true;
}

/*
 * Where fewer cores are free near the devices than the job needs: all of them, or as many as hold whole tasks, and the
 * best others. candidate->devices_unserved: how many others.
 */
static const struct score_cost *cost_partly_near(struct candidate_set *s, const struct shape *shape,
						 const struct score_need *need, struct candidate_node *candidate)
{
	unsigned words = core_set_words(shape->cores), want = device_count(&s->devices, candidate->tasks), near;
	uint64_t *cores = s->sets + DEVICE_SHARES_MAX * words, *others = cores + words;
	bool whole = score_task_room(score_task_of(need), need->cores) > 1;
	struct device_share shares[DEVICE_SHARES_MAX];
	struct device_set sets[DEVICE_SHARES_MAX];
	struct device_groups groups;

	device_groups_read(&s->devices, candidate->tasks, candidate->node, shape, s->sets, &groups);
	if (need->fit == FIT_SPREAD || (need->path && need->path->steps) ||
	    !device_choice_sets(shape, &groups, want, s->free_cores, need, sets))
		return NULL;
	device_choice_shares(&groups, sets, want, s->free_cores, words, cores, shares);
	near = core_set_count(cores, words);
	if (whole)
		near = score_task_span(score_task_of(need), score_task_room(score_task_of(need), near));
	if (!near || near >= need->cores || !keep_best(shape, need, near, cores))
		return NULL;
	for (unsigned w = 0; w < words; w++)
		others[w] = s->free_cores[w] & ~cores[w];
	if (!keep_best(shape, need, need->cores - near, others))
		return NULL;
	for (unsigned w = 0; w < words; w++)
		cores[w] |= others[w];
	candidate->devices_unserved = need->cores - near;
	return fit_cost(&candidates_cache, shape, cores, need, &candidate->fit);
}

/* A whole node is available only if no other job has any of it; then all its cores are the job's. */
static bool whole_need(const struct candidate_set *s, unsigned have, struct candidate_node *candidate,
		       struct score_need *need)
{
	if (!s->req->whole_nodes)
		return true;
	if (!s->taken && occupancy_busy_cores(candidate->node))
		return false;
	candidate->spare = have - need->cores;
	*need = (struct score_need){ .cores = have, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	return true;
}

/* What so many tasks need on a node: the same wherever a core has as many threads. */
static const struct candidate_tasks *tasks_need(struct candidate_set *s, uint32_t tasks, int node)
{
	struct candidate_tasks *n = &s->need;
	uint16_t threads = node_record_table_ptr[node]->tpc;
	uint32_t nodes = s->req->share[0].nodes + s->req->share[1].nodes;

	if (n->tasks == tasks && n->nodes == nodes && n->threads == threads &&
	    n->tasks_per_core == s->req->tasks_per_core)
		return n;
	*n = (struct candidate_tasks){ .tasks = tasks, .nodes = nodes, .threads = threads,
				  .tasks_per_core = s->req->tasks_per_core,
				  .shares_cores = job_request_shares_cores(s->req, tasks, node) };
	job_request_need(s->req, tasks, node, &n->need);
	return n;
}

static void candidate_need(struct candidate_set *s, const struct candidate_node *candidate, struct score_need *need)
{
	*need = tasks_need(s, candidate->tasks, candidate->node)->need;
	if (candidate->cores) {
		need->cores = candidate->cores;
		need->task_cores = 1;
		need->task = (struct score_task){0};
	}
}

/* Limits the need to cores whose own NUMA nodes hold the job's memory. A job of a whole node has all of these. */
static void need_limit(struct candidate_set *s, int node, uint64_t wanted, const struct shape *shape,
		       struct score_need *need)
{
	const node_record_t *n = node_record_table_ptr[node];
	struct numa_memory m;

	if (!wanted || s->req->request.memory == FIT_OFF || s->req->whole_nodes)
		return;
	m = (struct numa_memory){
		.capacity = n->real_memory > n->mem_spec_limit ? n->real_memory - n->mem_spec_limit : 0,
		.held = occupancy_memory(node), .used = occupancy_core_memory(s->taken, node), .wanted = wanted,
	};
	need->nlimits = numa_memory_limits(shape, &m, need->cores, s->free_cores, s->limits, s->limits_max);
	need->limits = s->limits;
}

static void candidate_cost(struct candidate_set *s, const struct shape *shape, const struct score_need *need,
			   struct candidate_node *candidate)
{
	bool mixes = false, known = false;

	candidate->devices_unserved = 0;
	candidate->cost = s->devices.name ? cost_near(s, shape, need, candidate, &known) : NULL;
	candidate->devices_far = known && !candidate->cost;
	if (candidate->devices_far)
		candidate->devices_unserved = need->cores;
	if (candidate->devices_far && !s->local_only && !keeps_cores(s, candidate->node))
		candidate->cost = cost_partly_near(s, shape, need, candidate);
	if (!candidate->cost)
		keep_for_own(s, candidate->node, NULL, 0, s->free_cores);
	if (!candidate->cost && !s->local_only)
		candidate->cost = fit_cost_of_kind(&candidates_cache, shape, s->free_cores, need, s->sets,
						   &kept.memos[candidate->node], &candidate->fit, &mixes);
	/* All cores of a node have its kinds. */
	candidate->mixes_kinds = mixes && !s->req->whole_nodes;
}

/* Whether the devices are nearer or, as near, fewer tasks cut than on other cores of the same node. */
static bool devices_nearer(const struct candidate_node *a, const struct candidate_node *b)
{
	if (a->devices_far != b->devices_far)
		return b->devices_far;
	if (a->devices_unserved != b->devices_unserved)
		return a->devices_unserved < b->devices_unserved;
	return score_count(a->cost, SCORE_CUTS, LEVEL_NUMA) < score_count(b->cost, SCORE_CUTS, LEVEL_NUMA);
}

/*
 * Where memory is preferred: gives it up if no cores have it or, of a job with devices, if these are nearer to other
 * cores, or tasks whole there.
 */
static void prefer_memory(struct candidate_set *s, const struct shape *shape, struct score_need *need,
			  struct candidate_node *candidate)
{
	struct candidate_node without = *candidate;

	if (!need->nlimits || s->req->request.memory != FIT_PREFER || (candidate->cost && !s->devices.name))
		return;
	need->nlimits = 0;
	without.memory_far = true;
	read_free(s, candidate->node);	/* candidate_cost may have taken some out */
	candidate_cost(s, shape, need, &without);
	if (!candidate->cost || (without.cost && devices_nearer(&without, candidate)))
		*candidate = without;
}

/* Computes the cost of the candidate; false when the tasks do not fit. Cheap checks come first. */
static bool candidate_weigh(struct candidate_set *s, struct candidate_node *candidate)
{
	const struct shape *shape;
	struct score_need need;
	int node = candidate->node;
	const gres_node_state_t *gpus = NULL;
	uint64_t memory = memory_on(s, node, candidate->tasks);
	unsigned have, path = request_path_cores(&s->req->request.path);

	candidate_need(s, candidate, &need);
	if ((path && !s->req->whole_nodes && need.cores != path) ||
	    (!candidate->cores && !has_memory(s, node, memory)) ||
	    !device_fits(&s->devices, candidate->tasks, node, !s->taken) || !(shape = node_shape(node)))
		return false;
	have = read_free(s, node);
	if (have < need.cores || !whole_need(s, have, candidate, &need))
		return false;
	candidate->need_cores = need.cores;
	/* Parts of one job may have to be on different nodes: the next one may need what is larger. */
	if (s->spare_gpus && !s->devices.name && !s->job->het_job_id)
		gpus = device_state(node, "gpu");
	/* Where all GPUs are allocated, the cores beside them are worth no more than others. */
	candidate->worth = chooser_worth(gpus && gpus->gres_cnt_avail > (s->taken ? 0 : gpus->gres_cnt_alloc),
					 glue_cores(node), node_record_table_ptr[node]->real_memory);
	candidate->queue_first = s->queue_first;
	candidate->free = need.fit == FIT_SPREAD ? 0 :
		chooser_free(have, need.cores, !core_set_count(taken_on(s, node), core_set_words(glue_cores(node))),
			     s->req->min_nodes > 1);
	need_limit(s, node, memory, shape, &need);
	candidate_cost(s, shape, &need, candidate);
	prefer_memory(s, shape, &need, candidate);
	return candidate->cost;
}

bool candidates_find_on(struct candidate_set *s, uint32_t tasks, int node, struct candidate_node *out)
{
	const bitstr_t *required = s->job->details->req_node_bitmap;

	if (!tasks && !(tasks = tasks_on(s, read_free(s, node), node)))
		return false;
	if (s->of_partition && tasks > tasks_on(s, glue_cores(node), node))
		return false;
	/* Most nodes of a full cluster: nothing else of them is read. */
	if (!s->taken && glue_cores(node) - occupancy_busy_cores(node) < tasks_need(s, tasks, node)->need.cores)
		return false;
	*out = (struct candidate_node){ .node = node, .tasks = tasks,
					.weight = glue_weight(node_record_table_ptr[node], s->starts),
			      .shares_cores = tasks_need(s, tasks, node)->shares_cores,
			      .required = required && bit_test((bitstr_t *) required, node) };
	return candidate_weigh(s, out);
}

void candidates_find(struct candidate_set *s, uint32_t tasks, uint32_t or_tasks, const bool *but)
{
	s->count = 0;
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i] && !(but && but[i]) &&
		    (candidates_find_on(s, tasks, i, &s->list[s->count]) ||
		     (or_tasks && candidates_find_on(s, or_tasks, i, &s->list[s->count]))))
			s->count++;
}

/* The largest number of cores in one domain, near the node's devices. */
static void find_largest_near(struct candidate_set *s, const struct shape *shape, const struct score_need *need,
			      struct candidate_node *candidate)
{
	unsigned words = core_set_words(shape->cores), want = device_count(&s->devices, 1), n, most;
	uint64_t *cores = s->sets + DEVICE_SHARES_MAX * words;
	struct device_share shares[DEVICE_SHARES_MAX];
	struct device_set sets[DEVICE_SHARES_MAX];
	const struct score_cost *cost;
	struct device_groups groups;
	struct node_fit *fit;

	device_groups_read(&s->devices, 1, candidate->node, shape, s->sets, &groups);
	want = devices_wanted(s, want, &groups);
	n = device_choice_sets(shape, &groups, want, s->free_cores, need, sets);
	for (unsigned i = 0; i < n; i++) {
		keep_for_own(s, candidate->node, shares,
			     device_choice_shares(&groups, &sets[i], want, s->free_cores, words, cores, shares), cores);
		if ((most = fit_most(&candidates_cache, shape, cores, need, &cost, &fit)) <= candidate->cores)
			continue;
		candidate->cores = most;
		candidate->cost = cost;
	}
}

/*
 * Leaves of the free cores those whose own NUMA node has room for all memory of the job on the node: whichever of these
 * it gets have it near. It gets at most cores of its own for each of its tasks, unless it states CPUs for each device.
 */
static void keep_near_memory(struct candidate_set *s, const struct shape *shape, int node)
{
	const struct job_request *req = s->req;
	uint64_t tasks = MAX(req->tasks, req->node_room), cores = glue_cores(node), wanted;
	struct score_need all, one = { .cores = 1 };

	job_request_need(req, tasks, node, &all);
	if (!device_cpus(s->job))
		cores = MIN(cores, MAX(all.cores, tasks * all.task_cores));
	wanted = req->memory_per_cpu ? req->memory * cores * node_record_table_ptr[node]->tpc :
		 memory_on(s, node, job_request_capacity(req, glue_cores(node), node));
	need_limit(s, node, wanted, shape, &one);
	for (const struct score_limit *l = one.limits; l && l < one.limits + one.nlimits; l++)
		for (unsigned c = l->first; !l->most && c < l->first + l->cores; c++)
			core_set_remove(s->free_cores, c);
}

/*
 * Finds the largest number of cores in one domain, near the devices if required. With devices, the cores are chosen
 * again among all sets near them once the number is known.
 */
static void find_largest(struct candidate_set *s, const struct shape *shape, struct candidate_node *candidate)
{
	struct score_need need;

	job_request_need(s->req, 1, candidate->node, &need);
	need.task_cores = 1;
	need.task = (struct score_task){0};
	if (s->req->request.fit != FIT_REQUIRE)
		need.level = LEVEL_NODE;
	read_free(s, candidate->node);
	if (s->req->request.memory == FIT_REQUIRE)
		keep_near_memory(s, shape, candidate->node);
	if (!s->local_only)
		keep_for_own(s, candidate->node, NULL, 0, s->free_cores);
	if (s->local_only)
		find_largest_near(s, shape, &need, candidate);
	else
		candidate->cores = fit_most(&candidates_cache, shape, s->free_cores, &need, &candidate->cost,
					    &candidate->fit);
	candidate->need_cores = candidate->cores;
	if (s->devices.name)
		candidate->fit = NULL;
}

bool candidates_domain_on(struct candidate_set *s, int node, struct candidate_node *out)
{
	const struct shape *shape = s->req->request.path.steps ? NULL : node_shape(node);
	struct candidate_node candidate = { .node = node };

	if (shape && device_fits(&s->devices, 1, node, !s->taken))
		find_largest(s, shape, &candidate);
	candidate.tasks = candidate.cores ? tasks_on(s, candidate.cores, node) : 0;
	candidate.tasks = candidate.tasks < s->req->node_room ? 0 : device_tasks(&s->devices, candidate.tasks, node,
										  !s->taken);
	if (!candidate.tasks)
		return false;
	*out = candidate;
	return true;
}

struct job_holding candidates_domains(struct candidate_set *s)
{
	struct job_holding h = {0};

	s->count = 0;
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i] && candidates_domain_on(s, i, &s->list[s->count]))
			job_request_hold(s->req, 0, s->list[s->count++].tasks, &h);
	return h;
}

bool candidates_given_on(struct candidate_set *s, int node, unsigned cores, struct candidate_node *out)
{
	uint32_t most = job_request_capacity(s->req, cores, node);

	*out = (struct candidate_node){ .node = node, .cores = cores,
					.tasks = device_tasks(&s->devices, most, node, !s->taken) };
	return cores && node_shape(node) && candidate_weigh(s, out);
}

uint32_t candidates_capacity(const struct candidate_set *s)
{
	uint32_t most = 0;

	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i])
			most = MAX(most, tasks_on(s, glue_cores(i), i));
	return most;
}

uint32_t candidates_range_on(struct candidate_set *s, int node, uint32_t *least)
{
	unsigned path = request_path_cores(&s->req->request.path), have = node_shape(node) ? read_free(s, node) : 0;
	uint32_t few = 0, most = path > have ? 0 : tasks_on(s, path ? path : have, node);
	struct candidate_node candidate;

	if (s->req->node_tasks)
		most = MIN(most, s->req->node_tasks);
	if (!path && s->req->request.fit == FIT_REQUIRE)
		most = candidates_domain_on(s, node, &candidate) ? MIN(most, candidate.tasks) : 0;
	if (most && candidates_find_on(s, most, node, &candidate)) {
		/* With CPUs for each device, fewer tasks on fewer nodes need as many cores. */
		*least = path && !s->req->device_cpus ? job_request_fewest(s->req, path, node) : 1;
		return most;
	}
	/* No candidate for that many: binary search, because a node that fits some tasks also fits fewer. */
	while (!path && few + 1 < most) {
		uint32_t half = few + (most - few) / 2;

		if (candidates_find_on(s, half, node, &candidate))
			few = half;
		else
			most = half;
	}
	*least = 1;
	return few;
}

uint32_t candidates_holds_on(struct candidate_set *s, int node, uint32_t most, uint64_t *holds,
			     struct candidate_node *one)
{
	uint32_t room = node_shape(node) ? tasks_on(s, read_free(s, node), node) : 0, tasks = 1;

	most = MIN(most, s->req->node_tasks ? MIN(room, s->req->node_tasks) : room);
	for (; tasks <= most; tasks++)
		/* Slurm uses no core of a node with room for fewer tasks than node_room. */
		if (candidates_find_on(s, tasks, node, one) &&
		    job_request_capacity(s->req, one->need_cores, node) >= s->req->node_room)
			core_set_add(holds, tasks);
	return tasks - 1;
}

int candidates_unknown(const struct candidate_set *s)
{
	bitstr_t *named = s->job->details->req_node_bitmap;
	struct score_need need;
	int other = -1;

	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1)) {
		if (!node_record_table_ptr[i] || node_shape(i))
			continue;
		job_request_need(s->req, s->req->share[0].tasks, i, &need);
		if (need.cores <= glue_cores(i) && (!named || bit_test(named, i)))
			return i;
		if (need.cores <= glue_cores(i) && other < 0)
			other = i;
	}
	return named && (uint32_t) bit_set_count(named) >= s->req->max_nodes ? -1 : other;
}

int candidates_capped(const struct candidate_set *s)
{
	for (int i = s->of_partition ? glue_next(s->nodes, 0) : -1; i >= 0; i = glue_next(s->nodes, i + 1)) {
		unsigned free_cores = node_record_table_ptr[i] && s->of_partition[i] ? read_free(s, i) : 0;

		if (free_cores && tasks_on(s, free_cores, i) < MIN(job_request_capacity(s->req, free_cores, i),
								    s->req->share[0].tasks))
			return i;
	}
	return -1;
}

/* The largest domains that these cores are; 0: a core is in none of several cores. */
static unsigned limits_none_of(const struct shape *shape, const uint64_t *cores, struct score_limit *out, unsigned room)
{
	unsigned next = 0, n = 0, covered = 0;

	for (size_t i = 0; i < shape->ndomains && n < room; i++) {
		const struct shape_domain *d = &shape->domains[i];
		unsigned c = d->first;

		while (c < d->first + d->cores && core_set_has(cores, c))
			c++;
		if (d->first < next || d->cores < 2 || c < d->first + d->cores)
			continue;
		out[n++] = (struct score_limit){ d->first, d->cores, 0 };
		covered += d->cores;
		next = d->first + d->cores;
	}
	return covered == core_set_count(cores, core_set_words(shape->cores)) ? n : 0;
}

/*
 * Cores that cost the same, but are not near free GPUs, or near fewer of them; else these. The cost of a choice within
 * limits is exact, too, so that equal costs mean equally good cores.
 */
static const uint64_t *cores_sparing_gpus(struct candidate_set *s, const struct candidate_node *candidate,
					  const uint64_t *cores)
{
	const struct shape *shape = node_shape(candidate->node);
	unsigned words = core_set_words(shape->cores), least = 0;
	bool refused = candidates_cache.refused;
	struct device_groups free_gpus;
	struct score_need need;

	device_groups_read(&(struct device_need){ .name = "gpu", .ntypes = 1 }, 0, candidate->node, shape, s->sets,
			   &free_gpus);
	candidate_need(s, candidate, &need);
	read_free(s, candidate->node);
	if (free_gpus.n)
		need_limit(s, candidate->node, memory_on(s, candidate->node, candidate->tasks), shape, &need);
	/* Of several kinds of core the best one was chosen before, among fewer cores than all. */
	if (!free_gpus.n || need.nlimits || need.fit == FIT_SPREAD || shape->nkinds > 1)
		return cores;
	/* The set after the groups is the sum of those with more free GPUs than `least`: all of them first. */
	for (uint64_t *near = s->sets + DEVICE_SHARES_MAX * words;;) {
		const struct score_cost *cost;
		unsigned fewest = UINT_MAX;
		bool in_common = false;
		struct node_fit *fit;

		memset(near, 0, words * sizeof(*near));
		for (unsigned i = 0; i < free_gpus.n; i++) {
			unsigned gpus = free_gpus.devices[i];

			for (unsigned w = 0; gpus > least && w < words; w++)
				near[w] |= free_gpus.cores[i * words + w];
			fewest = gpus > least ? MIN(fewest, gpus) : fewest;
		}
		for (unsigned w = 0; w < words; w++)
			in_common |= near[w] & cores[w];
		if (fewest == UINT_MAX || !in_common)
			break;
		need.limits = s->limits;
		need.nlimits = limits_none_of(shape, near, s->limits, s->limits_max);
		cost = need.nlimits ? fit_cost(&candidates_cache, shape, s->free_cores, &need, &fit) : NULL;
		if (cost && !score_compare(cost, candidate->cost)) {
			const uint64_t *other = fit_cores(&candidates_cache, fit, need.cores);

			cores = other ? other : cores;
			break;
		}
		least = fewest;
	}
	candidates_cache.refused = refused;
	return cores;
}

const uint64_t *candidate_cores(struct candidate_set *s, const struct candidate_node *candidate)
{
	struct candidate_node again = *candidate;
	const uint64_t *cores;

	/* If only some devices were considered so far, consider all. */
	if (!again.fit && !candidate_weigh(s, &again))
		return NULL;
	cores = fit_cores(&candidates_cache, again.fit, again.need_cores);
	return cores && s->spare_gpus && !s->req->whole_nodes && !s->devices.name ?
	       cores_sparing_gpus(s, &again, cores) : cores;
}
