/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "start_estimate.h"

#include <stdlib.h>

#include "node_shape.h"
#include "occupancy.h"

#define TRIES 8		/* for even shares; each is a simulation by Slurm */

struct leaving {
	job_record_t **jobs;
	unsigned count;
};

static int by_end(const void *a, const void *b)
{
	const job_record_t *x = *(job_record_t *const *) a, *y = *(job_record_t *const *) b;

	return (x->end_time > y->end_time) - (x->end_time < y->end_time);
}

/* Whether the job has or keeps any of the nodes. */
static bool is_there(const job_record_t *job, const bitstr_t *nodes)
{
	const job_resources_t *r = job->job_resrcs;
	bitstr_t *kept;
	bool there;

	if (!(IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) || !r || !r->node_bitmap ||
	    bit_size(r->node_bitmap) != node_record_count)
		return false;
	if (!job->details || !glue_network_alone(job))
		return bit_overlap_any(r->node_bitmap, (bitstr_t *) nodes);
	kept = bit_copy(r->node_bitmap);
	glue_add_network_alone(job, kept);
	there = bit_overlap_any(kept, (bitstr_t *) nodes);
	FREE_NULL_BITMAP(kept);
	return there;
}

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
	while ((job = list_next(it)))
		if (is_there(job, nodes))
			l->jobs[l->count++] = job;
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
	bitstr_t *seated;
	uint32_t *capacity;	/* tasks that the largest domain holds, by node */
	struct job_holding holding;
};

static int released_begin(struct released *g, struct candidate_set *s)
{
	*g = (struct released){ .taken = occupancy_copy(), .seated = bit_alloc(node_record_count),
			    .capacity = calloc(node_record_count + 1, sizeof(*g->capacity)) };
	if (!g->taken || !g->capacity)
		return -1;
	s->taken = g->taken;
	g->holding = candidates_domains(s);
	for (unsigned i = 0; i < s->count; i++)
		g->capacity[s->list[i].node] = s->list[i].tasks;
	candidates_find(s, s->req->share[0].tasks, 0, NULL);
	for (unsigned i = 0; i < s->count; i++)
		bit_set(g->seated, s->list[i].node);
	return 0;
}

static void released_end(struct released *g, struct candidate_set *s)
{
	s->taken = NULL;
	FREE_NULL_BITMAP(g->seated);
	free(g->capacity);
	free(g->taken);
}

/* Updates the job's nodes as if it had ended. */
static void job_release(struct candidate_set *s, const job_record_t *job, struct released *g)
{
	const bitstr_t *nodes = job->job_resrcs->node_bitmap;
	struct candidate_node candidate;

	occupancy_without(job, g->taken);
	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		if (!bit_test((bitstr_t *) s->nodes, i))
			continue;
		if (!bit_test(g->seated, i) && candidates_find_on(s, s->req->share[0].tasks, i, &candidate))
			bit_set(g->seated, i);
		if (candidates_domain_on(s, i, &candidate)) {
			job_request_hold(s->req, g->capacity[i], candidate.tasks, &g->holding);
			g->capacity[i] = candidate.tasks;
		}
	}
}

/* When the budget is used up before the last attempt, intermediate steps are not examined. */
static bool try_without_all(struct candidate_set *s, const struct leaving *l, unsigned from, struct released *g,
			    start_estimate_try_t *try, void *user)
{
	while (from < l->count)
		occupancy_without(l->jobs[from++], g->taken);
	candidates_budget(s);
	if (!s->req->request.path.steps)
		s->budget.offers = 0;
	return try(user, s, true);
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
		have = bit_set_count(g->seated);
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
	return l->count && try_without_all(s, l, gone, g, try, user);
}

bool start_estimate_find(struct candidate_set *s, start_estimate_try_t *try, void *user)
{
	struct leaving l = {0};
	struct released g;
	bool found;

	candidates_budget(s);
	s->budget.attempt *= 2;		/* each also examines all nodes several times */
	found = !released_begin(&g, s) && !leaving_read(&l, s) && ends_simulate(s, &l, &g, try, user);
	released_end(&g, s);
	free(l.jobs);
	return found;
}

/* Nodes that the job names must all be used: each has a candidate, or is missing from the snapshot and may have one. */
static bool named_have_candidates(const struct candidate_set *s)
{
	const bitstr_t *named = s->job->details->req_node_bitmap;
	bitstr_t *seated = bit_alloc(node_record_count);
	bool have = true;

	for (unsigned i = 0; i < s->count; i++)
		bit_set(seated, s->list[i].node);
	for (int i = named ? glue_next(named, 0) : -1; have && i >= 0; i = glue_next(named, i + 1))
		have = bit_test(seated, i) || !node_record_table_ptr[i] || !node_shape(i);
	FREE_NULL_BITMAP(seated);
	return have;
}

bool start_estimate_possible(struct candidate_set *s)
{
	uint64_t *taken = occupancy_none();
	struct job_holding h;
	bool possible = true;
	struct plan p;

	s->taken = taken;
	if (taken && (s->req->request.path.steps || s->req->request.memory == FIT_REQUIRE)) {
		possible = plan_make(&p, s);
		plan_end(&p);
	} else if (taken) {
		h = candidates_domains(s);
		possible = job_request_may_hold(s->req, &h) && named_have_candidates(s);
	}
	s->taken = NULL;
	free(taken);
	return possible;
}
