/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "plan.h"

#include <stdlib.h>

#include "exclusion.h"
#include "leaf.h"

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

/* Of the last plan, empty: its size is that of the cluster. */
static struct choice kept;
static int kept_nodes;

void plans_clear(void)
{
	choice_free(&kept);
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
	good = !choice_begin(&p->choice) && chooser_run(&c, &p->choice);
	s->count = c.count;
	return good;
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

/* Slurm takes the lightest nodes first, and named ones always; both may be anywhere. */
static bool all_alike(const struct candidate_set *s)
{
	if (s->job->details->req_node_bitmap || s->job->details->contiguous || glue_network_alone(s->job) ||
	    glue_segments(s->job))
		return false;
	for (unsigned i = 1; i < s->count; i++)
		if (s->list[i].weight != s->list[0].weight)
			return false;
	return true;
}

/* The leaf with the fewest candidates of those with enough; of several the one with the best of the first. */
static uint32_t leaf_choose(const struct candidate_set *s, unsigned leaves, unsigned nodes)
{
	unsigned *count = calloc(leaves, sizeof(*count));
	uint32_t best = LEAF_NONE, leaf;

	for (unsigned i = 0; count && i < s->count; i++)
		if ((leaf = leaf_of(s->list[i].node)) != LEAF_NONE)
			count[leaf]++;
	for (unsigned i = 0; count && i < s->count; i++)
		if ((leaf = leaf_of(s->list[i].node)) != LEAF_NONE && count[leaf] >= nodes &&
		    (best == LEAF_NONE || count[leaf] < count[best]))
			best = leaf;
	free(count);
	return best;
}

bool plan_in_leaf(struct plan *p, struct candidate_set *s)
{
	unsigned leaves = all_alike(s) ? leaf_count(s->job) : 0, nodes = p->choice.count, in = 0;
	uint32_t leaf = leaves ? leaf_choose(s, leaves, nodes) : LEAF_NONE;

	if (leaf == LEAF_NONE)
		return false;
	for (unsigned i = 0; i < s->count; i++)
		if (leaf_of(s->list[i].node) == leaf) {
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
