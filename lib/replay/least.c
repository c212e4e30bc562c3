/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/least.h"

#include <stdlib.h>
#include <string.h>

#include "replay/memo.h"
#include "score/score.h"

/* One answer holds the costs of all numbers of cores where score.h has them all at once. */
#define ALL_CORES 0

struct answer {
	struct score_table *table;	/* with ALL_CORES */
	bool none;
	struct score_cost cost;
};

struct offer {
	unsigned node;
	const struct score_cost *cost;
};

struct least {
	const struct cluster *cluster;
	struct memo *memo;
	struct request *requests;	/* a question's "what" is one of them */
	size_t nrequests;
	struct offer *offers;		/* the best so far, the worst of them last */
	size_t n;
};

static void answer_drop(void *given)
{
	struct answer *a = given;

	score_table_free(a->table);
	free(a);
}

static size_t answer_bytes(const void *given)
{
	const struct answer *a = given;

	return sizeof(*a) + (a->table ? score_table_bytes(a->table) : 0);
}

static bool has_table(const struct request *want)
{
	return want->fit == FIT_PREFER || (want->fit == FIT_REQUIRE && !want->path.steps);
}

static struct score_need need_of(const struct request *want, unsigned cores, unsigned task_cores)
{
	return (struct score_need){
		.cores = cores, .task_cores = task_cores, .fit = want->fit, .level = want->level,
		.path = want->path.steps ? &want->path : NULL,
	};
}

static void *answer_make(const struct kind *kind, const uint64_t *free_cores, const struct memo_question *q,
			 const void *user)
{
	const struct least *l = user;
	const struct request *want = &l->requests[q->what];
	struct score_need need = need_of(want, q->cores, q->task_cores);
	struct answer *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return NULL;
	if (has_table(want)) {
		a->table = score_table_new(kind->shape, free_cores, need.task_cores, need.level);
		rc = a->table ? 0 : -1;
	} else {
		rc = score_pick(kind->shape, free_cores, &need, NULL, &a->cost);
		a->none = rc > 0;
	}
	if (rc >= 0)
		return a;
	free(a);
	return NULL;
}

static const struct memo_make costs = { answer_make, answer_drop, answer_bytes };

struct least *least_new(const struct cluster *c)
{
	struct least *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct least){ .cluster = c, .memo = memo_new(&costs, l), .offers = calloc(c->n, sizeof(*l->offers)) };
	if (l->memo && l->offers)
		return l;
	least_free(l);
	return NULL;
}

void least_free(struct least *l)
{
	if (!l)
		return;
	memo_free(l->memo);
	free(l->offers);
	free(l->requests);
	free(l);
}

static bool request_same(const struct request *a, const struct request *b)
{
	bool same = a->fit == b->fit && a->level == b->level && a->path.steps == b->path.steps;

	for (unsigned i = 0; same && i < a->path.steps; i++)
		same = a->path.step[i].level == b->path.step[i].level && a->path.step[i].count == b->path.step[i].count;
	return same;
}

/* The number of a request, a new one when it is new; -1 when memory is short. */
static long request_number(struct least *l, const struct request *want)
{
	struct request *bigger;

	for (size_t i = 0; i < l->nrequests; i++)
		if (request_same(&l->requests[i], want))
			return i;
	if (!(bigger = realloc(l->requests, (l->nrequests + 1) * sizeof(*bigger))))
		return -1;
	l->requests = bigger;
	bigger[l->nrequests] = *want;
	return l->nrequests++;
}

/* The cost on a node: NULL in *cost when the job cannot be there. 0, or -1 when memory is short. */
static int node_cost(struct least *l, const struct room *r, const struct past_job *job, long what, unsigned node,
		     const struct score_cost **cost)
{
	const struct kind *kind = l->cluster->nodes[node].kind;
	const struct request *want = &l->requests[what];
	unsigned cores = job_cores(job, job_node_tasks(job), kind);
	struct memo_question q = { what, job_task_cores(job, kind), has_table(want) ? ALL_CORES : cores };
	const struct answer *a = memo_get(l->memo, kind, room_node(r, node), &q);

	if (!a)
		return -1;
	*cost = a->table ? score_table_cost(a->table, cores) : a->none ? NULL : &a->cost;
	if (a->table && *cost && want->fit == FIT_REQUIRE && score_count(*cost, SCORE_BEYOND, want->level))
		*cost = NULL;
	return 0;
}

/* Keep the least `wanted` offers in order; of equal ones the first to come. */
static void offer_keep(struct least *l, size_t wanted, struct offer offer)
{
	size_t at = l->n;

	if (l->n == wanted && score_compare(offer.cost, l->offers[at - 1].cost) >= 0)
		return;
	if (l->n == wanted)
		at--;
	else
		l->n++;
	for (; at && score_compare(offer.cost, l->offers[at - 1].cost) < 0; at--)
		l->offers[at] = l->offers[at - 1];
	l->offers[at] = offer;
}

static int offers_find(struct least *l, const struct room *r, const struct past_job *job, long what)
{
	const struct score_cost *cost;

	l->n = 0;
	for (unsigned i = 0; i < l->cluster->n; i++) {
		if (!room_holds(r, i, job, LEVEL_NODE))
			continue;
		if (node_cost(l, r, job, what, i, &cost))
			return -1;
		if (cost)
			offer_keep(l, job->nodes, (struct offer){ i, cost });
	}
	return 0;
}

static int offer_compare(const void *a, const void *b)
{
	const struct offer *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

int least_nodes(struct least *l, const struct room *r, const struct past_job *job, const struct request *want,
		unsigned *nodes)
{
	long what = request_number(l, want);

	memo_trim(l->memo);
	if (what < 0 || offers_find(l, r, job, what))
		return -1;
	if (l->n < job->nodes)
		return 1;
	qsort(l->offers, l->n, sizeof(*l->offers), offer_compare);
	for (size_t i = 0; i < l->n; i++)
		nodes[i] = l->offers[i].node;
	return 0;
}

int least_seat(const struct room *r, const struct past_job *job, const struct request *want, struct node_share *seat)
{
	const struct kind *kind = r->cluster->nodes[seat->node].kind;
	struct score_need need = need_of(want, seat->cores, job_task_cores(job, kind));
	struct score_cost cost;

	return score_pick(kind->shape, room_node(r, seat->node), &need, seat->mask, &cost);
}
