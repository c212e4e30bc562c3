/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "plan.h"

#include "exclusion.h"

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

bool plan_make(struct plan *p, struct candidate_set *s)
{
	struct job_request *a = s->req;
	struct chooser c = {
		.tasks = a->tasks, .min_nodes = a->min_nodes, .max_nodes = a->max_nodes, .first = a->first,
		.last = a->last, .any_nodes = a->any_nodes, .fixed_cores = a->request.path.steps, .share = a->share,
		.nodes = node_record_count, .list = s->list, .user = s, .find = nodes_find, .range = range_on,
		.capacity = nodes_capacity,
	};
	bool good;

	*p = (struct plan){0};
	good = !choice_init(&p->choice, node_record_count) && chooser_run(&c, &p->choice);
	s->count = c.count;
	return good;
}

bool plan_given(struct plan *p, struct candidate_set *s)
{
	const job_resources_t *r = s->job->job_resrcs;
	unsigned at = 0;

	*p = (struct plan){ .given = true };
	if (!r || choice_init(&p->choice, node_record_count))
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
	choice_free(&p->choice);
}

const struct candidate_node *plan_beside(const struct plan *p, const struct candidate_set *s)
{
	const struct candidate_node *best = NULL, *last = &p->choice.list[p->choice.count - 1];

	for (unsigned i = 0; !p->given && i < s->count; i++)
		if (!p->choice.chosen[s->list[i].node] && s->list[i].weight == last->weight &&
		    (!best || candidate_node_compare(&s->list[i], best) < 0))
			best = &s->list[i];
	return best;
}

const struct candidate_node *plan_worst(const struct plan *p)
{
	const struct candidate_node *worst = p->choice.list;

	for (unsigned i = 1; i < p->choice.count; i++)
		if (score_compare(p->choice.list[i].cost, worst->cost) > 0)
			worst = &p->choice.list[i];
	return worst;
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
