/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/replay_parts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "score/chooser.h"
#include "score/numa_memory.h"

struct placement {
	const struct cluster *cluster;
	struct fit_cache cache;
	struct candidate_node *list;	/* space for one choice */
	struct score_limit *limits;	/* space for those of one node */
	uint64_t *cores;		/* space for those of one node */
};

/* One choice: the state of the chooser's callbacks. */
struct search {
	struct placement *placement;
	const struct cluster_room *room;
	const struct past_job *job;
	const struct request *want;
};

struct placement *placement_new(const struct cluster *c)
{
	struct placement *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct placement){ .cluster = c, .list = calloc(c->n, sizeof(*l->list)) };
	l->limits = calloc(c->numas_max + 1, sizeof(*l->limits));
	l->cores = calloc(c->words_max + 1, sizeof(*l->cores));
	if (l->list && l->limits && l->cores)
		return l;
	placement_free(l);
	return NULL;
}

void placement_free(struct placement *l)
{
	if (!l)
		return;
	fit_cache_clear(&l->cache);
	free(l->list);
	free(l->limits);
	free(l->cores);
	free(l);
}

static void need_limit(const struct search *s, unsigned node, struct score_need *need)
{
	const struct cluster_node *n = &s->room->cluster->nodes[node];
	struct numa_memory m = {
		.capacity = n->kind->memory, .held = s->room->held[node], .used = s->room->used + n->core,
		.wanted = s->job->memory,
	};

	if (s->want->memory == FIT_OFF)
		return;
	need->nlimits = numa_memory_limits(n->kind->shape, &m, need->cores, cluster_room_node(s->room, node),
					   s->placement->limits, s->placement->cluster->numas_max);
	need->limits = s->placement->limits;
}

static void node_cost(const struct search *s, unsigned node, const struct score_need *need, struct candidate_node *out)
{
	out->cost = fit_cost_of_kind(&s->placement->cache, s->room->cluster->nodes[node].kind->shape,
				     cluster_room_node(s->room, node), need, s->placement->cores,
				     NULL, &out->fit, &out->mixes_kinds);
}

static bool node_score(const struct search *s, unsigned node, uint32_t tasks, struct candidate_node *out)
{
	const struct cluster_kind *kind = s->room->cluster->nodes[node].kind;
	struct score_need need = {
		.cores = cluster_job_cores(s->job, tasks, kind), .task_cores = cluster_job_task_cores(s->job, kind),
		.fit = s->want->fit, .level = s->want->level, .path = &s->want->path,
	};

	if (s->room->count[node] < need.cores || !cluster_room_has_memory(s->room, node, s->job->memory))
		return false;
	need_limit(s, node, &need);
	*out = (struct candidate_node){ .node = node, .tasks = tasks, .need_cores = need.cores };
	node_cost(s, node, &need, out);
	if (!out->cost && need.nlimits && s->want->memory == FIT_PREFER) {
		need.nlimits = 0;
		out->memory_far = true;
		node_cost(s, node, &need, out);
	}
	return out->cost;
}

static unsigned nodes_find(void *user, uint32_t tasks, const bool *chosen)
{
	const struct search *s = user;
	unsigned n = 0;

	for (unsigned i = 0; i < s->room->cluster->n; i++)
		n += !chosen[i] && node_score(s, i, tasks, &s->placement->list[n]);
	return n;
}

static int by_node(const void *a, const void *b)
{
	const struct candidate_node *x = a, *y = b;

	return x->node - y->node;
}

/* The chosen nodes in the cluster's order, each with its tasks and the cores of its cost. */
static struct cluster_shares *seats_of(struct placement *l, const struct past_job *job, struct choice *choice,
				       unsigned *nodes)
{
	struct cluster_shares *seats;

	qsort(choice->list, choice->count, sizeof(*choice->list), by_node);
	for (unsigned i = 0; i < choice->count; i++)
		nodes[i] = choice->list[i].node;
	if (!(seats = cluster_seats_new(l->cluster, job, nodes)))
		return NULL;
	for (unsigned i = 0; i < choice->count; i++) {
		const struct candidate_node *c = &choice->list[i];
		const uint64_t *cores = fit_cores(&l->cache, c->fit, c->need_cores);

		if (!cores) {
			free(seats);
			return NULL;
		}
		seats->list[i].tasks = c->tasks;
		seats->list[i].cores = c->need_cores;
		memcpy(seats->list[i].mask, cores, l->cluster->nodes[c->node].kind->words * sizeof(*cores));
	}
	return seats;
}

int placement_choose(struct placement *l, const struct cluster_room *r, const struct past_job *job,
		     const struct request *want, unsigned *nodes, struct cluster_shares **out)
{
	struct search search = { l, r, job, want };
	struct chooser_share share[2];
	struct chooser chooser = {
		.tasks = job->tasks, .min_nodes = job->nodes, .max_nodes = job->nodes, .first = job->nodes,
		.last = job->nodes, .share = share, .nodes = l->cluster->n, .list = l->list, .user = &search,
		.find = nodes_find,
	};
	struct choice choice;
	int rc = -1;

	fit_cache_begin(&l->cache, 0);
	fit_cache_allow(&l->cache, UINT_MAX);
	if (choice_init(&choice, l->cluster->n))
		goto end;
	rc = chooser_run(&chooser, &choice) ? 0 : 1;
	if (!rc && !(*out = seats_of(l, job, &choice, nodes)))
		rc = -1;
	if (l->cache.failed)
		rc = -1;
end:
	choice_free(&choice);
	return rc;
}
