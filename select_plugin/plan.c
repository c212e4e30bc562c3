/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "plan.h"

#include "base/string_map.h"
#include "occupancy.h"

/* --- leaves of the network --- */

/*
 * The leaf switch (topology/tree) or block (topology/block) of each node. A job in one of them is as near together as
 * any can be: no other choice is on fewer switches or blocks. Read from Slurm's topology plugin and kept until the
 * nodes change or plans_clear. The caller holds slurmctld's node lock.
 */
#define LEAF_NONE UINT32_MAX	/* of a node that has none or several, or whose place has changed */

static struct {
	int nodes;			/* 0: not read */
	struct place {
		uint32_t leaf;
		char *dynamic;		/* topology_str then: scontrol may move a node */
	} *places;			/* by node */
	struct string_map names;
} leaves;

static void leaves_clear(void)
{
	for (int i = 0; i < leaves.nodes; i++)
		xfree(leaves.places[i].dynamic);
	free(leaves.places);
	string_map_free(&leaves.names);
	memset(&leaves, 0, sizeof(leaves));
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

/*
 * By a node's address, "top.leaf1" of "top.leaf1.cn1". Several, as in "leaf[1-2]" and "leaf1,other", are none.
 */
static uint32_t leaf_read(const node_record_t *node)
{
	char *address = NULL, *pattern = NULL, *last;
	size_t leaf = STRING_MAP_NONE, len, name;

	if (node && !glue_network_address(node, &address, &pattern) && address && pattern &&
	    (ends_with(pattern, "switch.node") || ends_with(pattern, "block.node")) &&
	    (len = strlen(address)) > (name = strlen(node->name) + 1)) {
		address[len - name] = 0;
		last = strrchr(address, '.');
		last = last ? last + 1 : address;
		if (*last && !strpbrk(last, "[,"))
			leaf = string_map_add(&leaves.names, address);
	}
	xfree(address);
	xfree(pattern);
	return leaf == STRING_MAP_NONE ? LEAF_NONE : leaf;
}

/*
 * The number of leaves for the job; 0 if the network of its partition has none that is known here: another plugin, or
 * not the cluster's own topology; or memory is short.
 */
static unsigned leaf_count(const job_record_t *job)
{
	if (!glue_cluster_network(job))
		return 0;
	if (leaves.nodes == node_record_count)
		return leaves.names.count;
	leaves_clear();
	if (!(leaves.places = calloc(node_record_count, sizeof(*leaves.places))))
		return 0;
	leaves.nodes = node_record_count;
	for (int i = 0; i < leaves.nodes; i++)
		leaves.places[i] = (struct place){ leaf_read(node_record_table_ptr[i]),
						   xstrdup(glue_network_place(node_record_table_ptr[i])) };
	return leaves.names.count;
}

static uint32_t leaf_of(int node)
{
	const struct place *p = &leaves.places[node];

	return xstrcmp(p->dynamic, glue_network_place(node_record_table_ptr[node])) ? LEAF_NONE : p->leaf;
}

/* --- callbacks of the chooser --- */

static unsigned nodes_find(void *user, uint32_t tasks, const bool *chosen)
{
	struct candidate_set *s = user;

	candidates_find(s, tasks, 0, chosen);
	return s->count;
}

static uint32_t range_on(void *user, int node, uint32_t *least)
{
	struct candidate_set *s = user;

	return bit_test((bitstr_t *) s->nodes, node) && node_record_table_ptr[node] ? candidates_range_on(s, node,
													  least) : 0;
}

static uint32_t nodes_capacity(void *user)
{
	return candidates_capacity(user);
}

static uint32_t holds_on(void *user, int node, uint32_t most, uint64_t *holds, struct candidate_node *one)
{
	struct candidate_set *s = user;

	return bit_test((bitstr_t *) s->nodes, node) && node_record_table_ptr[node] ?
		       candidates_holds_on(s, node, most, holds, one) : 0;
}

/* Of the last plan, empty: its size is that of the cluster. */
static struct choice kept;
static int kept_nodes;

void plans_clear(void)
{
	choice_free(&kept);
	leaves_clear();
}

static int choice_begin(struct choice *out)
{
	bool fits = kept.list && kept.chosen && kept_nodes == node_record_count;

	if (!fits) {
		choice_free(&kept);
		return choice_init(out, node_record_count);
	}
	*out = kept;
	kept = (struct choice){0};
	return 0;
}

/*
 * Where a job with GPUs for each task states one task a core, Slurm divides a step's tasks by cores and not by GPUs
 * (step_layout_create()): the first nodes get the more, and a step with more tasks than GPUs there does not start.
 */
static bool fewer_gpus_first(const struct choice *c, const struct candidate_set *s)
{
	if (!s->devices.by_task || s->req->own_cores || s->req->tasks_per_core != 1)
		return false;
	for (unsigned i = 0; i < c->count; i++)
		for (unsigned k = 0; k < c->count; k++)
			if (c->list[i].node < c->list[k].node && c->list[i].tasks < c->list[k].tasks)
				return true;
	return false;
}

/*
 * Divides the shares again so that the larger ones are on the first nodes: if any nodes hold them so, these do. False,
 * without a choice, if none do, the tasks were not divided by shares, or a node that the job names is not among them.
 */
static bool larger_shares_first(struct choice *c, struct candidate_set *s, uint32_t named)
{
	const struct chooser_share *share = s->req->share;
	unsigned n = 0;
	int last = -1;

	if (c->uneven || c->count != share[0].nodes + share[1].nodes)
		return false;
	choice_clear(c);
	candidates_find(s, share[0].tasks, 0, NULL);
	for (unsigned i = 0; i < s->count && c->count < share[0].nodes; i++) {
		last = s->list[i].node;
		choice_add(c, &s->list[i]);
	}
	candidates_find(s, share[1].tasks, 0, c->chosen);
	for (unsigned i = 0; i < s->count; i++)
		if (s->list[i].node > last)
			s->list[n++] = s->list[i];
	s->count = n;
	if (c->count < share[0].nodes || n < share[1].nodes)
		return false;
	candidate_nodes_sort(s->list, n, share[1].nodes);
	for (unsigned i = 0; i < share[1].nodes; i++)
		choice_add(c, &s->list[i]);
	for (unsigned i = 0; i < c->count; i++)
		named -= c->list[i].required;
	return !named;
}

bool plan_make(struct plan *p, struct candidate_set *s)
{
	struct job_request *a = s->req;
	bool divides = a->request.memory == FIT_REQUIRE || s->candidates <= BUDGET_DIVISION_NODES;
	struct chooser c = {
		.tasks = a->tasks, .min_nodes = a->min_nodes, .max_nodes = a->max_nodes, .first = a->first,
		.last = a->last, .any_nodes = a->any_nodes, .fixed_cores = a->request.path.steps, .share = a->share,
		.nodes = node_record_count, .list = s->list, .user = s, .find = nodes_find, .range = range_on,
		.capacity = nodes_capacity, .holds = divides ? holds_on : NULL,
		.tries = BUDGET_DIVISION(s->candidates),
		.required = s->job->details->req_node_bitmap ? bit_set_count(s->job->details->req_node_bitmap) : 0,
	};
	bool good;

	*p = (struct plan){0};
	good = !choice_begin(&p->choice) && chooser_run(&c, &p->choice);
	s->count = c.count;
	candidates_cache.refused |= c.cut;
	s->no_steps = good && fewer_gpus_first(&p->choice, s) &&
		      !(job_request_waits(a) && larger_shares_first(&p->choice, s, c.required));
	return good && !s->no_steps;
}

bool plan_given(struct plan *p, struct candidate_set *s)
{
	const job_resources_t *r = s->job->job_resrcs;
	unsigned at = 0;

	*p = (struct plan){ .given = true };
	if (!r || choice_begin(&p->choice))
		return false;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; at += glue_cores(i), i = glue_next(r->node_bitmap, i + 1)) {
		unsigned cores = bit_set_count_range(r->core_bitmap, at, at + glue_cores(i));
		struct candidate_node given;

		if (!candidates_given_on(s, i, cores, &given))
			return false;
		choice_add(&p->choice, &given);
	}
	return p->choice.count;
}

void plan_end(struct plan *p)
{
	choice_clear(&p->choice);
	choice_free(&kept);
	kept = p->choice;
	kept_nodes = node_record_count;
	p->choice = (struct choice){0};
}

bool plan_slurm_picks_nodes(const struct candidate_set *s)
{
	bool several = s->req->share[0].nodes + s->req->share[1].nodes > 1;

	return (several && s->job->details->contiguous) ||
	       ((several || glue_network_alone(s->job)) && glue_network(s->job));
}

bool plan_in_leaf(struct plan *p, struct candidate_set *s)
{
	unsigned nodes = p->choice.count, in = 0, nleaves, *count;
	uint32_t best = LEAF_NONE, leaf;

	/* Slurm takes the lightest nodes first, and named ones always; both may be anywhere. */
	if (s->job->details->req_node_bitmap || s->job->details->contiguous || glue_network_alone(s->job) ||
	    glue_segments(s->job))
		return false;
	for (unsigned i = 1; i < s->count; i++)
		if (s->list[i].weight != s->list[0].weight)
			return false;
	if (!(nleaves = leaf_count(s->job)) || !(count = calloc(nleaves, sizeof(*count))))
		return false;
	/* The leaf with the fewest candidates of those with enough; of several the one with the best of the first. */
	for (unsigned i = 0; i < s->count; i++)
		if ((leaf = leaf_of(s->list[i].node)) != LEAF_NONE)
			count[leaf]++;
	for (unsigned i = 0; i < s->count; i++)
		if ((leaf = leaf_of(s->list[i].node)) != LEAF_NONE && count[leaf] >= nodes &&
		    (best == LEAF_NONE || count[leaf] < count[best]))
			best = leaf;
	free(count);
	if (best == LEAF_NONE)
		return false;
	for (unsigned i = 0; i < s->count; i++)
		if (leaf_of(s->list[i].node) == best) {
			struct candidate_node c = s->list[i];

			s->list[i] = s->list[in];
			s->list[in++] = c;
		}
	candidate_nodes_sort(s->list, in, nodes);
	choice_clear(&p->choice);
	for (unsigned i = 0; i < nodes; i++)
		choice_add(&p->choice, &s->list[i]);
	p->leaf = in;
	return true;
}

slurm_exclusion_t *plan_exclusion(struct candidate_set *s, const struct candidate_node *list, unsigned count)
{
	slurm_exclusion_t *x = exclusion_copy(s->excluded);

	for (unsigned i = 0; i < count; i++) {
		const uint64_t *cores = candidate_cores(s, &list[i]);

		if (!cores) {
			exclusion_free(x);
			return NULL;
		}
		exclusion_keep(x, list[i].node, cores);
	}
	return x;
}

/* --- later --- */

#define TRIES 8		/* for even shares; each is a simulation by Slurm */

struct leaving {
	job_record_t **jobs;
	unsigned count;
};

static int by_end(const void *a, const void *b)
{
	const job_record_t *const *x = a, *const *y = b;

	return COMPARE((*x)->end_time, (*y)->end_time);
}

/* The running jobs that have or keep any of the nodes, by their ends. */
static int leaving_read(struct leaving *l, const struct candidate_set *s)
{
	slurm_iterator_t it;
	job_record_t *job;
	bitstr_t *nodes;

	*l = (struct leaving){ .jobs = malloc((list_count(job_list) + 1) * sizeof(*l->jobs)) };
	if (!l->jobs)
		return -1;
	nodes = bit_copy((bitstr_t *) s->nodes);
	glue_add_network_alone(s->job, nodes);
	it = list_iterator_create(job_list);
	while ((job = list_next(it))) {
		const job_resources_t *r = job->job_resrcs;
		bitstr_t *keeps;

		if (!(IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) || !r || !r->node_bitmap ||
		    bit_size(r->node_bitmap) != node_record_count)
			continue;
		keeps = job->details && glue_network_alone(job) ? bit_copy(r->node_bitmap) : NULL;
		if (keeps)
			glue_add_network_alone(job, keeps);
		if (bit_overlap_any(keeps ? keeps : r->node_bitmap, nodes))
			l->jobs[l->count++] = job;
		FREE_NULL_BITMAP(keeps);
	}
	list_iterator_destroy(it);
	FREE_NULL_BITMAP(nodes);
	qsort(l->jobs, l->count, sizeof(*l->jobs), by_end);
	return 0;
}

/*
 * What could be had once some jobs have ended: nodes with a candidate for an even share, and what the largest domains
 * hold.
 */
struct released {
	uint64_t *taken;
	bitstr_t *fitting;
	uint32_t *capacity;	/* tasks that the largest domain holds, by node */
	struct job_holding holding;
};

/* Updates the job's nodes as if it had ended. */
static void job_release(struct candidate_set *s, const job_record_t *job, struct released *g)
{
	const bitstr_t *nodes = job->job_resrcs->node_bitmap;
	struct candidate_node candidate;

	occupancy_without(job, g->taken);
	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		if (!bit_test((bitstr_t *) s->nodes, i))
			continue;
		if (!bit_test(g->fitting, i) && candidates_find_on(s, s->req->share[0].tasks, i, &candidate))
			bit_set(g->fitting, i);
		if (candidates_domain_on(s, i, &candidate)) {
			job_request_hold(s->req, g->capacity[i], candidate.tasks, &g->holding);
			g->capacity[i] = candidate.tasks;
		}
	}
}

/*
 * Jobs that end in the same second are released together. For uneven shares it can only be estimated when there is a
 * place: tried at growing intervals, and finally without all jobs.
 */
static bool ends_simulate(struct candidate_set *s, const struct leaving *l, struct released *g,
			  start_estimate_try_t *try, void *user)
{
	int want = s->req->share[0].nodes + s->req->share[1].nodes, have, tried = -1, tries = 0;
	unsigned next = 0, gone = 0;

	for (unsigned i = 0; i + 1 < l->count && !s->budget.refused && !budget_exhausted(&s->budget); i++) {
		bool even, uneven;

		job_release(s, l->jobs[i], g);
		gone = i + 1;
		if (!by_end(&l->jobs[i], &l->jobs[i + 1]))
			continue;
		have = bit_set_count(g->fitting);
		even = have >= want && have != tried && tries < TRIES;
		uneven = i >= next && job_request_may_hold(s->req, &g->holding);
		if (!even && !uneven)
			continue;
		if (even) {
			tried = have;
			tries++;
		}
		if (uneven)
			next = 2 * i + 1;
		if (try(user, s, false))
			return true;
	}
	if (!l->count)
		return false;
	/* When the budget is used up before the last attempt, intermediate steps are not examined. */
	while (gone < l->count)
		occupancy_without(l->jobs[gone++], g->taken);
	candidates_budget(s);
	if (!s->req->request.path.steps)
		s->budget.offers = 0;
	return try(user, s, true);
}

bool start_estimate_find(struct candidate_set *s, start_estimate_try_t *try, void *user)
{
	struct released g = { .taken = occupancy_copy(), .fitting = bit_alloc(node_record_count),
			      .capacity = calloc(node_record_count + 1, sizeof(*g.capacity)) };
	struct leaving l = {0};
	bool found = false;

	candidates_budget(s);
	s->budget.attempt *= 2;		/* each also examines all nodes several times */
	if (g.taken && g.capacity && !leaving_read(&l, s)) {
		s->taken = g.taken;
		g.holding = candidates_domains(s);
		for (unsigned i = 0; i < s->count; i++)
			g.capacity[s->list[i].node] = s->list[i].tasks;
		candidates_find(s, s->req->share[0].tasks, 0, NULL);
		for (unsigned i = 0; i < s->count; i++)
			bit_set(g.fitting, s->list[i].node);
		found = ends_simulate(s, &l, &g, try, user);
	}
	s->taken = NULL;
	FREE_NULL_BITMAP(g.fitting);
	free(g.capacity);
	free(g.taken);
	free(l.jobs);
	return found;
}

bool start_estimate_possible(struct candidate_set *s)
{
	const bitstr_t *named = s->job->details->req_node_bitmap;
	uint64_t *taken = occupancy_none();
	struct job_holding h;
	bool possible = true;
	struct plan p;

	s->taken = taken;
	if (taken && (s->req->request.path.steps || s->req->request.memory == FIT_REQUIRE)) {
		possible = plan_make(&p, s);
		plan_end(&p);
	} else if (taken) {
		bitstr_t *fitting = bit_alloc(node_record_count);

		h = candidates_domains(s);
		possible = job_request_may_hold(s->req, &h);
		for (unsigned i = 0; i < s->count; i++)
			bit_set(fitting, s->list[i].node);
		/* Named nodes must all be used: each has a candidate, or is not in the snapshot and may have one. */
		for (int i = named ? glue_next(named, 0) : -1; possible && i >= 0; i = glue_next(named, i + 1))
			possible = bit_test(fitting, i) || !node_record_table_ptr[i] || !node_shape(i);
		FREE_NULL_BITMAP(fitting);
	}
	s->taken = NULL;
	free(taken);
	return possible;
}
