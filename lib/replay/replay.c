/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/replay.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay_parts.h"

/* A job in the simulation. */
struct turn {
	const struct past_job *job;
	struct request want;
	bool ours;			/* placed by Topiary */
	struct class *class;
	struct cluster_shares *seats;		/* while it runs */
	long long end, due;		/* its end; its end by the time limit */
};

/* Jobs with equal requests: if one cannot be placed, no other can, until something changes. */
struct class {
	bool refused;
	unsigned long stuck;		/* the number of ends when there was no room */
	unsigned long barred;		/* the number of changes when it would have delayed the first in the queue */
};

struct replay {
	const struct cluster *cluster;
	const struct replay_watch *watch;
	const struct policy *policy;
	struct turn *turns;		/* by submission */
	struct class *classes;
	size_t n, come;			/* how many of them have been submitted */
	struct cluster_room room, later;	/* now; at the start of the first in the queue */
	long long now, reserved;	/* reserved: that start, 0 when unknown */
	size_t later_holds;		/* nodes that can take a share of it then */
	struct turn **queue;		/* waiting jobs, in order; */
	struct turn **by_end, **by_due;	/* running jobs, in order */
	size_t waiting, running;
	unsigned long ends, changes;	/* from 1 on */
	unsigned *nodes;		/* scratch space */
	struct placement *placement;
	struct judge *judge;
	struct tally tally;
	struct err *err;
};

static int no_memory(struct replay *r)
{
	return err_set(r->err, "out of memory");
}

/* --- placement --- */

static enum level level_within(const struct turn *t)
{
	return t->ours && t->want.fit == FIT_REQUIRE && !t->want.path.steps ? t->want.level : LEVEL_NODE;
}

static int choose_stock(struct replay *r, const struct turn *t, struct cluster_shares **out)
{
	enum stock_cores how = r->policy->kind == POLICY_BLOCK ? STOCK_BLOCK : STOCK_CYCLIC;
	int rc = stock_nodes(&r->room, t->job, r->nodes);
	struct cluster_shares *seats;

	if (rc)
		return rc;
	if (!(seats = cluster_seats_new(r->cluster, t->job, r->nodes)))
		return -1;
	for (size_t i = 0; i < seats->n; i++)
		stock_seat(&r->room, t->job, how, &seats->list[i]);
	*out = seats;
	return 0;
}

/*
 * Chooses a job's nodes and cores: 0; 1 when there is no room; -1 when memory is short. Tasks that cannot be spread now
 * are placed as by Slurm. If the shares of the tasks are not equal, not all nodes must hold the largest.
 */
static int nodes_choose(struct replay *r, const struct turn *t, struct cluster_shares **out)
{
	bool can = cluster_room_can(&r->room, t->job, level_within(t));
	int rc = 1;

	if (t->ours && (can || t->job->tasks % t->job->nodes))
		rc = placement_choose(r->placement, &r->room, t->job, &t->want, r->nodes, out);
	if (can && (!t->ours || (rc > 0 && t->want.fit == FIT_SPREAD)))
		rc = choose_stock(r, t, out);
	return rc;
}

/* --- running jobs --- */

static int turn_compare(long long a_time, const struct turn *a, long long b_time, const struct turn *b)
{
	if (a_time != b_time)
		return a_time < b_time ? -1 : 1;
	return (a > b) - (a < b);
}

static int end_compare(const struct turn *a, const struct turn *b)
{
	return turn_compare(a->end, a, b->end, b);
}

static int due_compare(const struct turn *a, const struct turn *b)
{
	return turn_compare(a->due, a, b->due, b);
}

/* The position of a turn, or where to insert it. */
static size_t order_find(struct turn **list, size_t n, const struct turn *t,
			 int (*compare)(const struct turn *a, const struct turn *b))
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (compare(list[middle], t) < 0)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

static void list_insert(struct turn **list, size_t n, size_t at, struct turn *t)
{
	memmove(&list[at + 1], &list[at], (n - at) * sizeof(*list));
	list[at] = t;
}

static void list_remove(struct turn **list, size_t n, size_t at)
{
	memmove(&list[at], &list[at + 1], (n - at - 1) * sizeof(*list));
}

static long long time_limit(const struct turn *t)
{
	return t->job->limit ? t->job->limit : t->job->run;
}

/* Takes ownership of the shares, or frees them. */
static int job_start(struct replay *r, struct turn *t, struct cluster_shares *seats)
{
	struct judgement judgement;

	t->seats = seats;
	t->end = r->now + t->job->run;
	t->due = r->now + time_limit(t);
	if (judge_seats(r->judge, &r->room, t->job, seats, &judgement))
		return no_memory(r);
	if (cluster_room_occupy(&r->room, seats))
		return err_set(r->err, "%s: job %s was given cores or memory that other jobs hold", r->policy->name,
			       t->job->name);
	list_insert(r->by_end, r->running, order_find(r->by_end, r->running, t, end_compare), t);
	list_insert(r->by_due, r->running, order_find(r->by_due, r->running, t, due_compare), t);
	r->running++;
	r->changes++;
	tally_room(&r->tally, &r->room, seats);
	tally_job(&r->tally, t->job, &judgement, r->now - t->job->submit);
	if (r->watch && r->watch->started)
		r->watch->started(r->watch->user, t->job, seats, r->now);
	return 0;
}

static void job_finish(struct replay *r)
{
	struct turn *t = r->by_end[0];

	list_remove(r->by_due, r->running, order_find(r->by_due, r->running, t, due_compare));
	list_remove(r->by_end, r->running--, 0);
	cluster_room_release(&r->room, t->seats);
	tally_room(&r->tally, &r->room, t->seats);
	if (r->watch && r->watch->ended)
		r->watch->ended(r->watch->user, t->job, t->seats, r->now);
	free(t->seats);
	t->seats = NULL;
	r->ends++;
	r->changes++;
	r->reserved = 0;
}

/* --- the first in the queue --- */

/* Returns 0: started; 1: waits; -1. */
static int try_first(struct replay *r)
{
	struct turn *t = r->queue[0];
	struct cluster_shares *seats;
	int rc;

	if (t->class->stuck == r->ends)
		return 1;
	if ((rc = nodes_choose(r, t, &seats)) > 0)
		t->class->stuck = r->ends;
	if (rc)
		return rc < 0 ? no_memory(r) : 1;
	list_remove(r->queue, r->waiting--, 0);
	r->reserved = 0;
	return job_start(r, t, seats);
}

/*
 * Releases cores in the later room, or occupies them, and updates the number of nodes that can take a share of the
 * first in the queue.
 */
static int later_change(struct replay *r, const struct cluster_shares *s, bool give)
{
	const struct turn *first = r->queue[0];
	int rc = 0;

	for (size_t i = 0; i < s->n; i++)
		r->later_holds -= cluster_room_holds(&r->later, s->list[i].node, first->job, level_within(first));
	if (give)
		cluster_room_release(&r->later, s);
	else
		rc = cluster_room_occupy(&r->later, s);
	for (size_t i = 0; i < s->n; i++)
		r->later_holds += cluster_room_holds(&r->later, s->list[i].node, first->job, level_within(first));
	return rc;
}

/*
 * The start of the first in the queue if each job runs as long as it may; jobs beyond their limit are expected to end
 * at any moment.
 */
static void first_reserve(struct replay *r)
{
	const struct turn *first = r->queue[0];

	if (r->reserved > r->now)
		return;
	r->reserved = 0;
	cluster_room_copy(&r->later, &r->room);
	r->later_holds = 0;
	for (unsigned i = 0; i < r->cluster->n; i++)
		r->later_holds += cluster_room_holds(&r->later, i, first->job, level_within(first));
	for (size_t i = 0; i < r->running; i++) {
		long long due = r->by_due[i]->due;

		if (r->later_holds >= first->job->nodes && due > r->reserved)
			break;
		later_change(r, r->by_due[i]->seats, true);
		r->reserved = due > r->now ? due : r->now + 1;
	}
	r->changes++;
}

/* --- backfill --- */

static bool delays_first(struct replay *r, const struct cluster_shares *seats)
{
	if (later_change(r, seats, false))
		return true;
	if (r->later_holds >= r->queue[0]->job->nodes)
		return false;
	later_change(r, seats, true);
	return true;
}

/* Returns 0: started; 1: waits; -1. */
static int try_behind(struct replay *r, size_t at)
{
	struct turn *t = r->queue[at];
	bool stays = r->now + time_limit(t) > r->reserved;
	struct cluster_shares *seats;
	int rc;

	if (t->class->stuck == r->ends || (stays && t->class->barred == r->changes))
		return 1;
	if ((rc = nodes_choose(r, t, &seats)) > 0)
		t->class->stuck = r->ends;
	if (rc)
		return rc < 0 ? no_memory(r) : 1;
	if (stays && delays_first(r, seats)) {
		free(seats);
		t->class->barred = r->changes;
		return 1;
	}
	list_remove(r->queue, r->waiting--, at);
	r->tally.sums.backfilled++;
	return job_start(r, t, seats);
}

static int queue_schedule(struct replay *r)
{
	int rc = 0;

	while (r->waiting && !(rc = try_first(r)))
		;
	if (rc < 0 || r->waiting < 2)
		return rc < 0 ? -1 : 0;
	first_reserve(r);
	for (size_t at = 1; at < r->waiting && at < REPLAY_DEPTH; at += rc)
		if ((rc = try_behind(r, at)) < 0)
			return -1;
	return 0;
}

/* --- time --- */

static void job_submit(struct replay *r)
{
	struct turn *t = &r->turns[r->come++];

	if (t->class->refused)
		r->tally.sums.refused++;
	else
		r->queue[r->waiting++] = t;
}

/* The time of the next event, or LLONG_MAX. */
static long long next_moment(const struct replay *r)
{
	long long ends = r->running ? r->by_end[0]->end : LLONG_MAX;
	long long comes = r->come < r->n ? r->turns[r->come].job->submit : LLONG_MAX;

	return ends < comes ? ends : comes;
}

static int pass_time(struct replay *r)
{
	long long next;

	while ((next = next_moment(r)) != LLONG_MAX) {
		tally_pass(&r->tally, next);
		r->now = next;
		while (r->running && r->by_end[0]->end == r->now)
			job_finish(r);
		while (r->come < r->n && r->turns[r->come].job->submit == r->now)
			job_submit(r);
		if (queue_schedule(r))
			return -1;
	}
	return 0;
}

/* --- begin and end --- */

static int request_compare(const struct request *a, const struct request *b)
{
	if (a->fit != b->fit)
		return a->fit < b->fit ? -1 : 1;
	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->memory != b->memory)
		return a->memory < b->memory ? -1 : 1;
	if (a->path.steps != b->path.steps)
		return a->path.steps < b->path.steps ? -1 : 1;
	if (a->path.kind != b->path.kind)
		return a->path.kind < b->path.kind ? -1 : 1;
	for (unsigned i = 0; i < a->path.steps; i++) {
		const struct request_step *x = &a->path.step[i], *y = &b->path.step[i];

		if (x->level != y->level || x->count != y->count)
			return x->level < y->level || (x->level == y->level && x->count < y->count) ? -1 : 1;
	}
	return 0;
}

static int ask_compare(const void *a, const void *b)
{
	const struct turn *x = *(struct turn *const *) a, *y = *(struct turn *const *) b;
	const unsigned long long mine[] = { x->job->nodes, x->job->tasks, x->job->task_cpus, x->job->memory, x->ours };
	const unsigned long long yours[] = { y->job->nodes, y->job->tasks, y->job->task_cpus, y->job->memory, y->ours };

	for (size_t i = 0; i < sizeof(mine) / sizeof(mine[0]); i++)
		if (mine[i] != yours[i])
			return mine[i] < yours[i] ? -1 : 1;
	return x->ours ? request_compare(&x->want, &y->want) : 0;
}

/* The room is still empty: a request that cannot be placed now never can. */
static int class_open(struct replay *r, const struct turn *t)
{
	struct cluster_shares *seats = NULL;
	int rc = t->job->nodes > r->cluster->n ? 1 : nodes_choose(r, t, &seats);

	free(seats);
	t->class->refused = rc > 0;
	return rc < 0 ? no_memory(r) : 0;
}

static int classes_find(struct replay *r)
{
	struct turn **order = r->by_end;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		order[i] = &r->turns[i];
	qsort(order, r->n, sizeof(*order), ask_compare);
	for (size_t i = 0; i < r->n; i++) {
		bool new = !i || ask_compare(&order[i - 1], &order[i]);

		n += new;
		order[i]->class = &r->classes[n - 1];
		if (new && class_open(r, order[i]))
			return -1;
	}
	return 0;
}

static void turns_make(struct replay *r, const struct jobs *jobs)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct past_job *job = &jobs->list[i];
		struct request want = job->asks ? job->request : r->policy->request;

		want.memory = job->asks_memory ? job->request.memory : r->policy->request.memory;
		r->turns[i] = (struct turn){
			.job = job, .want = want, .ours = r->policy->kind == POLICY_FIT && want.fit != FIT_OFF,
		};
	}
}

static int replay_init(struct replay *r, const struct jobs *jobs)
{
	size_t n = jobs->n + 1;

	r->n = jobs->n;
	r->now = jobs->n ? jobs->list[0].submit : 0;
	r->ends = r->changes = 1;
	r->turns = calloc(n, sizeof(*r->turns));
	r->classes = calloc(n, sizeof(*r->classes));
	r->queue = calloc(n, sizeof(*r->queue));
	r->by_end = calloc(n, sizeof(*r->by_end));
	r->by_due = calloc(n, sizeof(*r->by_due));
	r->nodes = calloc(r->cluster->n, sizeof(*r->nodes));
	r->placement = placement_new(r->cluster);
	r->judge = judge_new(r->cluster);
	if (!r->turns || !r->classes || !r->queue || !r->by_end || !r->by_due || !r->nodes || !r->placement ||
	    !r->judge)
		return no_memory(r);
	if (cluster_room_init(&r->room, r->cluster, true) || cluster_room_init(&r->later, r->cluster, false) ||
	    tally_init(&r->tally, r->cluster, r->n, r->now))
		return no_memory(r);
	turns_make(r, jobs);
	return classes_find(r);
}

static void replay_free(struct replay *r)
{
	for (size_t i = 0; r->turns && i < r->n; i++)
		free(r->turns[i].seats);
	free(r->turns);
	free(r->classes);
	free(r->queue);
	free(r->by_end);
	free(r->by_due);
	free(r->nodes);
	placement_free(r->placement);
	judge_free(r->judge);
	cluster_room_free(&r->room);
	cluster_room_free(&r->later);
	tally_free(&r->tally);
}

int replay_run(const struct cluster *c, const struct jobs *jobs, const struct policy *policy,
	       const struct replay_watch *watch, struct replay_result *out, struct err *e)
{
	struct replay r = { .cluster = c, .policy = policy, .watch = watch, .err = e };
	int rc = replay_init(&r, jobs);

	if (!rc)
		rc = pass_time(&r);
	if (!rc)
		tally_end(&r.tally, out);
	replay_free(&r);
	return rc;
}
