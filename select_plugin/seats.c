/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "seats.h"

#include <stdlib.h>

#include "exclusion.h"
#include "known.h"
#include "occupancy.h"

struct fit_cache seats_cache;

int seats_begin(struct seats *s)
{
	unsigned most = 0;

	for (int i = 0; i < node_record_count; i++)
		most = MAX(most, core_set_words(glue_cores(i)));
	near_read(s->job, s->ask, &s->near);
	s->candidates = bit_set_count((bitstr_t *) s->nodes);
	seats_budget(s);
	s->list = malloc((node_record_count + 1) * sizeof(*s->list));
	s->free_cores = malloc((most + 1) * sizeof(*s->free_cores));
	s->sets = malloc((most + 1) * NEAR_MAX * sizeof(*s->sets));
	return s->list && s->free_cores && s->sets ? 0 : -1;
}

void seats_budget(struct seats *s)
{
	s->budget = budget_new(s->candidates);
	fit_cache_allow(&seats_cache, BUDGET_SCORES(s->candidates));
}

void seats_end(struct seats *s)
{
	free(s->list);
	free(s->free_cores);
	free(s->sets);
}

/* The cores that the job may have on a node: not taken, not excluded, not specialised. How many. */
static unsigned read_free(const struct seats *s, int node)
{
	const uint64_t *taken = s->taken ? s->taken + occupancy_at(node) : occupancy_busy(node);
	const bitstr_t *usable = node_record_table_ptr[node]->node_spec_bitmap;
	unsigned cores = glue_cores(node);

	core_set_complement(s->free_cores, taken, cores);
	for (unsigned c = 0; usable && c < cores; c++)
		if (!bit_test((bitstr_t *) usable, c))
			core_set_remove(s->free_cores, c);
	exclusion_apply(s->excluded, node, s->free_cores);
	return core_set_count(s->free_cores, core_set_words(cores));
}

static bool has_memory(const struct seats *s, int node, uint32_t tasks)
{
	const node_record_t *n = node_record_table_ptr[node];
	uint64_t need = ask_memory(s->ask, tasks), held = n->mem_spec_limit + (s->taken ? 0 : occupancy_memory(node));

	return !need || need + held <= n->real_memory;
}

/* Of the sets of cores near to its devices the one with the least cost. */
static const struct score_cost *cost_near(struct seats *s, int node, const struct shape *shape,
					  const struct score_need *need, uint32_t tasks, struct node_fit **fit)
{
	unsigned words = core_set_words(shape->cores), n = near_sets(&s->near, tasks, node, shape, s->sets);
	const struct score_cost *best = NULL, *c;
	struct node_fit *found;

	for (uint64_t *cores = s->sets; n--; cores += words) {
		core_set_intersect(cores, s->free_cores, words);
		if (!(c = fit_cost(&seats_cache, shape, cores, need, &found)) || (best && score_compare(c, best) >= 0))
			continue;
		best = c;
		*fit = found;
	}
	return best;
}

/* Whole nodes are had when nobody else has any of it; there, all cores are the job's. */
static bool whole_need(const struct seats *s, unsigned have, struct candidate_node *seat, struct score_need *need)
{
	if (!s->ask->whole_nodes)
		return true;
	if (!s->taken && occupancy_busy_cores(seat->node))
		return false;
	seat->spare = have - need->cores;
	*need = (struct score_need){ .cores = have, .task_cores = 1, .fit = FIT_PREFER, .level = LEVEL_NODE };
	return true;
}

static void seat_need(const struct ask *a, const struct candidate_node *seat, struct score_need *need)
{
	ask_need(a, seat->tasks, seat->node, need);
	if (seat->cores) {
		need->cores = seat->cores;
		need->task_cores = 1;
	}
}

/* The cost of the seat; false when the tasks do not fit. What is cheap is looked at first. */
static bool weigh(struct seats *s, struct candidate_node *seat)
{
	const struct shape *shape;
	struct score_need need;
	int node = seat->node;
	unsigned have;

	seat_need(s->ask, seat, &need);
	if ((!s->taken && glue_cores(node) - occupancy_busy_cores(node) < need.cores) ||
	    (!seat->cores && !has_memory(s, node, seat->tasks)) || !(shape = known_shape(node)))
		return false;
	have = read_free(s, node);
	if (have < need.cores || !whole_need(s, have, seat, &need))
		return false;
	seat->need_cores = need.cores;
	seat->cost = s->near.name ? cost_near(s, node, shape, &need, seat->tasks, &seat->fit) : NULL;
	if (!seat->cost && !s->near_only)
		seat->cost = fit_cost(&seats_cache, shape, s->free_cores, &need, &seat->fit);
	return seat->cost;
}

bool seats_find_on(struct seats *s, uint32_t tasks, int node, struct candidate_node *out)
{
	const bitstr_t *required = s->job->details->req_node_bitmap;

	if (!tasks && !(tasks = ask_capacity(s->ask, read_free(s, node), node)))
		return false;
	*out = (struct candidate_node){ .node = node, .tasks = tasks, .weight = node_record_table_ptr[node]->sched_weight,
			      .shares_cores = ask_shares_cores(s->ask, tasks, node),
			      .required = required && bit_test((bitstr_t *) required, node) };
	return weigh(s, out);
}

void seats_find(struct seats *s, uint32_t tasks, const bool *but)
{
	s->count = 0;
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i] && !(but && but[i]) &&
		    seats_find_on(s, tasks, i, &s->list[s->count]))
			s->count++;
}

/*
 * The most cores of one domain, near to the devices where they are to be. Where there are devices, the cores are scored
 * again once the number is known: of all sets near to them.
 */
static void find_largest(struct seats *s, const struct shape *shape, struct candidate_node *seat)
{
	unsigned words = core_set_words(shape->cores), n, most;
	const struct score_cost *cost;
	struct score_need need;
	struct node_fit *fit;

	ask_need(s->ask, 1, seat->node, &need);
	need.task_cores = 1;
	read_free(s, seat->node);
	if (!s->near_only)
		seat->cores = fit_most(&seats_cache, shape, s->free_cores, &need, &seat->cost, &seat->fit);
	n = s->near_only ? near_sets(&s->near, 1, seat->node, shape, s->sets) : 0;
	for (uint64_t *cores = s->sets; n--; cores += words) {
		core_set_intersect(cores, s->free_cores, words);
		if ((most = fit_most(&seats_cache, shape, cores, &need, &cost, &fit)) <= seat->cores)
			continue;
		seat->cores = most;
		seat->cost = cost;
	}
	seat->need_cores = seat->cores;
	if (s->near.name)
		seat->fit = NULL;
}

bool seats_domain_on(struct seats *s, int node, struct candidate_node *out)
{
	const struct shape *shape = s->ask->request.path.steps ? NULL : known_shape(node);
	struct candidate_node seat = { .node = node };

	if (shape)
		find_largest(s, shape, &seat);
	seat.tasks = seat.cores ? ask_capacity(s->ask, seat.cores, node) : 0;
	if (!seat.cores || !(seat.tasks || s->ask->overcommit))
		return false;
	*out = seat;
	return true;
}

struct holding seats_domains(struct seats *s)
{
	struct holding h = {0};

	s->count = 0;
	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i] && seats_domain_on(s, i, &s->list[s->count]))
			ask_hold(s->ask, 0, s->list[s->count++].tasks, &h);
	return h;
}

bool seats_given_on(struct seats *s, int node, unsigned cores, struct candidate_node *out)
{
	*out = (struct candidate_node){ .node = node, .cores = cores, .tasks = ask_capacity(s->ask, cores, node) };
	return cores && known_shape(node) && weigh(s, out);
}

uint32_t seats_capacity(const struct seats *s)
{
	uint32_t most = 0;

	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1))
		if (node_record_table_ptr[i])
			most = MAX(most, ask_capacity(s->ask, glue_cores(i), i));
	return most;
}

uint32_t seats_range_on(struct seats *s, int node, uint32_t *least)
{
	unsigned path = request_path_cores(&s->ask->request.path), have = known_shape(node) ? read_free(s, node) : 0;
	uint32_t few = 0, most = path > have ? 0 : ask_capacity(s->ask, path ? path : have, node);
	struct candidate_node seat;

	if (s->ask->node_tasks)
		most = MIN(most, s->ask->node_tasks);
	if (!path && s->ask->request.fit == FIT_REQUIRE)
		most = seats_domain_on(s, node, &seat) ? MIN(most, seat.tasks) : 0;
	if (most && seats_find_on(s, most, node, &seat)) {
		*least = path ? ask_fewest(s->ask, path, node) : 1;
		return most;
	}
	/* Not all that is free: what holds more tasks holds fewer, too. */
	while (!path && few + 1 < most) {
		uint32_t half = few + (most - few) / 2;

		if (seats_find_on(s, half, node, &seat))
			few = half;
		else
			most = half;
	}
	*least = 1;
	return few;
}

bool seats_unknown(const struct seats *s)
{
	struct score_need need;

	for (int i = glue_next(s->nodes, 0); i >= 0; i = glue_next(s->nodes, i + 1)) {
		if (!node_record_table_ptr[i] || known_shape(i))
			continue;
		ask_need(s->ask, s->ask->share[0].tasks, i, &need);
		if (need.cores <= glue_cores(i))
			return true;
	}
	return false;
}

const uint64_t *seat_cores(struct seats *s, const struct candidate_node *seat)
{
	struct candidate_node again = *seat;

	/* Where a device's nearest cores were not looked for among all: now they are. */
	if (!again.fit && !weigh(s, &again))
		return NULL;
	return fit_cores(&seats_cache, again.fit, again.need_cores);
}
