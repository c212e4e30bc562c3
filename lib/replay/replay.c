/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/replay.h"

#include "base/order.h"

/* A job in the simulation. */
struct turn {
	const struct past_job *job;
	struct request want;
	bool ours;			/* placed by Topiary */
	struct class *class;
	struct cluster_shares *shares;	/* while it runs */
	long long end, due;		/* its end; its end by the time limit */
};

/* Jobs with equal requests: if one cannot be placed, no other can, until something changes. */
struct class {
	bool refused;
	unsigned long stuck;		/* the number of ends when there was no room */
	unsigned long barred;		/* the number of changes when it would have delayed the first in the queue */
};

struct wait {
	long long ms;
	enum replay_class class;
};

/* The sums during a replay. */
struct tally {
	struct wait *waits;
	unsigned *loose[JUDGED_LEVELS];	/* by node: free cores in partly used domains; */
	unsigned long long loose_now[JUDGED_LEVELS];	/* of all nodes */
	double loose_time[JUDGED_LEVELS], free_time;
	long long first, last;		/* times */
	double ratios;
};

struct replay {
	const struct cluster *cluster;
	const struct replay_watch *watch;
	const struct replay_policy *policy;
	struct turn *turns;		/* by submission */
	struct class *classes;
	size_t n, come;			/* how many of them have been submitted */
	struct cluster_room room, later;	/* now; at the start of the first in the queue */
	long long now, reserved;	/* reserved: that start, 0 when unknown */
	size_t later_holds;		/* nodes that can take a share of it then */
	struct cluster_shares *plan;	/* its nodes then; NULL: not chosen yet, or not possible */
	struct turn **queue;		/* waiting jobs, in order; */
	struct turn **by_end, **by_due;	/* running jobs, in order */
	size_t waiting, running;
	unsigned long ends, changes;	/* from 1 on */
	unsigned *nodes;		/* scratch space */
	struct placer *placer;
	struct tally tally;
	struct replay_result result;
	struct err *err;
};

static int no_memory(struct replay *r)
{
	return err_set(r->err, "out of memory");
}

/* --- policies --- */

int replay_policy_parse(const char *word, struct replay_policy *out, struct err *e)
{
	struct replay_policy p = { .kind = POLICY_FIT,
				   .request = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_PREFER,
						.weight = WEIGHT_LONG } };
	char parts[REPLAY_POLICY_NAME], *rest = parts, *part;

	if ((size_t) snprintf(p.name, sizeof(p.name), "%s", word) >= sizeof(p.name))
		return err_set(e, "'%.40s': unknown policy", word);
	memcpy(parts, p.name, sizeof(parts));
	if (!strcmp(word, "stock") || !strcmp(word, "block")) {
		p.kind = *word == 's' ? POLICY_STOCK : POLICY_BLOCK;
		rest = NULL;
	} else if (fit_parse(part = strsep(&rest, ":")) < 0) {
		return err_set(e, "'%.40s': invalid policy, expected one of: stock, block, off, prefer, require, "
			       "spread",
			       word);
	} else if (request_set(&p.request, "topo-fit", part, e)) {
		return err_within(e, "'%.40s'", word);
	}
	while ((part = strsep(&rest, ":"))) {
		bool is_memory = !strncmp(part, "mem=", 4);

		if (!strncmp(part, "weight=", 7)) {
			int weight = request_weight_parse(part + 7);

			if (weight < 0)
				return err_set(e, "'%.40s': weight=%s: expected job, long or queue", word, part + 7);
			p.request.weight = weight;
			continue;
		}
		if (request_set(&p.request, is_memory ? "topo-mem" : "topo-level", is_memory ? part + 4 : part, e))
			return err_within(e, "'%.40s'", word);
	}
	*out = p;
	return 0;
}

/* --- sums --- */

static unsigned loose_on(const struct cluster_room *r, unsigned node, enum level level)
{
	const struct cluster_ranges *at = &r->cluster->nodes[node].kind->at[level];
	unsigned n = 0;

	for (size_t i = 0; i < at->n; i++) {
		unsigned count = cluster_range_count(cluster_room_node(r, node), at->list[i]);

		n += count < at->list[i].cores ? count : 0;
	}
	return n;
}

/* The room changed on these nodes. */
static void tally_room(struct tally *t, const struct cluster_room *r, const struct cluster_shares *s)
{
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < JUDGED_LEVELS; i++) {
			unsigned node = s->list[k].node, is = loose_on(r, node, judged_level(i));

			t->loose_now[i] = t->loose_now[i] - t->loose[i][node] + is;
			t->loose[i][node] = is;
		}
}

static void tally_job(struct replay *r, const struct past_job *job, const struct judgement *j)
{
	struct replay_result *s = &r->result;
	const struct cluster_kind *largest = r->cluster->largest;
	unsigned cores = cluster_job_cores(job, job->tasks, largest), has = largest->shape->cores;

	r->tally.waits[s->jobs++] = (struct wait){ r->now - job->submit, job->gpus ? REPLAY_GPUS :
		job->nodes > 1 ? REPLAY_NODES : cores <= has / 4 ? REPLAY_QUARTER : cores <= has / 2 ? REPLAY_HALF :
		REPLAY_NODE };
	for (size_t i = 0; i < JUDGED_LEVELS; i++) {
		s->split_own[i] += j->split_own[i];
		s->split_any[i] += j->split_any[i];
	}
	s->dominated += j->dominated;
	s->broken += j->broken;
	s->with_memory += job->memory > 0;
	s->memory_far += j->memory_far;
	s->memory_needless += j->memory_needless;
	r->tally.ratios += (double) j->touched / j->ideal;
}

ORDER(wait_compare, struct wait, COMPARE(x->ms, y->ms))

/* The least wait that at least so many percent of the jobs did not exceed; the waits are sorted. */
static struct replay_waits waits_of(const struct wait *waits, size_t n, enum replay_class class)
{
	struct replay_waits w = {0};
	size_t passed = 0;

	for (size_t i = 0; i < n; i++)
		if (class == REPLAY_ALL || waits[i].class == class) {
			w.jobs++;
			w.mean += waits[i].ms;
		}
	for (size_t i = 0; i < n && passed < (w.jobs * 90 + 99) / 100; i++)
		if (class == REPLAY_ALL || waits[i].class == class) {
			passed++;
			w.p90 = waits[i].ms;
		}
	w.mean /= w.jobs ? (long long) w.jobs : 1;
	return w;
}

static double share_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* --- placement --- */

static enum level level_within(const struct turn *t)
{
	return t->ours && t->want.fit == FIT_REQUIRE && !t->want.path.steps ? t->want.level : LEVEL_NODE;
}

/*
 * Chooses a job's nodes and cores in a room; can: enough nodes have the cores. 0; 1 when there is no room; -1 when
 * memory is short. Tasks that cannot be spread now are placed as by Slurm. If the shares of the tasks are not equal,
 * not all nodes must hold the largest.
 */
static int nodes_choose(struct replay *r, const struct cluster_room *room, const struct turn *t, bool can,
			struct cluster_shares **out)
{
	int rc = 1;

	if (t->ours && (can || t->job->tasks % t->job->nodes))
		rc = placer_choose(r->placer, room, t->job, &t->want, r->nodes, out);
	if (can && (!t->ours || (rc > 0 && t->want.fit == FIT_SPREAD)))
		rc = stock_choose(room, t->job, r->policy->kind == POLICY_BLOCK, r->nodes, out);
	return rc;
}

/* --- running jobs --- */

static int end_compare(const struct turn *a, const struct turn *b)
{
	return COMPARE(a->end, b->end) ?: COMPARE(a, b);
}

static int due_compare(const struct turn *a, const struct turn *b)
{
	return COMPARE(a->due, b->due) ?: COMPARE(a, b);
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

/* --- the queue --- */

/*
 * The start of the first in the queue if each job runs as long as it may; jobs beyond their limit are expected to end
 * at any moment.
 */
static void first_reserve(struct replay *r)
{
	const struct turn *first = r->queue[0];
	enum level within = level_within(first);

	if (r->reserved > r->now)
		return;
	r->reserved = 0;
	free(r->plan);
	r->plan = NULL;
	cluster_room_copy(&r->later, &r->room);
	r->later_holds = 0;
	for (unsigned i = 0; i < r->cluster->n; i++)
		r->later_holds += cluster_room_holds(&r->later, i, first->job, within);
	for (size_t i = 0; i < r->running; i++) {
		const struct cluster_shares *s = r->by_due[i]->shares;
		long long due = r->by_due[i]->due;

		if (r->later_holds >= first->job->nodes && due > r->reserved)
			break;
		for (size_t k = 0; k < s->n; k++)
			r->later_holds -= cluster_room_holds(&r->later, s->list[k].node, first->job, within);
		cluster_room_release(&r->later, s);
		for (size_t k = 0; k < s->n; k++)
			r->later_holds += cluster_room_holds(&r->later, s->list[k].node, first->job, within);
		r->reserved = due > r->now ? due : r->now + 1;
	}
	r->changes++;
}

/*
 * Keeps the planned nodes of the first in the queue from a job that would stay beyond its start: whole, as Slurm's
 * backfill does (_attempt_backfill() of plugins/sched/backfill). Released when the job is placed. 0, or -1.
 */
static int plan_keep(struct replay *r)
{
	const struct turn *first = r->queue[0];
	int rc = r->plan ? 0 : nodes_choose(r, &r->later, first, r->later_holds >= first->job->nodes, &r->plan);

	for (size_t i = 0; r->plan && i < r->plan->n; i++) {
		struct cluster_share *s = &r->plan->list[i];

		s->cores = r->room.count[s->node];
		s->memory = s->gpus = 0;
		memcpy(s->mask, cluster_room_node(&r->room, s->node),
		       r->cluster->nodes[s->node].kind->words * sizeof(*s->mask));
	}
	if (r->plan)
		cluster_room_occupy(&r->room, r->plan);
	return rc < 0 ? -1 : 0;
}

/* A waiting job, the first or behind it. Returns 0: started; 1: waits; -1. */
static int queue_try(struct replay *r, size_t at)
{
	struct turn *t = r->queue[at];
	bool stays = at && r->now + time_limit(t) > r->reserved;
	struct cluster_shares *shares = NULL;
	struct judgement judgement;
	int rc;

	if (t->class->stuck == r->ends || (stays && t->class->barred == r->changes))
		return 1;
	if (stays && plan_keep(r))
		return no_memory(r);
	rc = nodes_choose(r, &r->room, t, cluster_room_can(&r->room, t->job, level_within(t)), &shares);
	if (!rc && placer_judge(r->placer, &r->room, t->job, shares, &judgement))
		rc = -1;
	if (stays && r->plan)
		cluster_room_release(&r->room, r->plan);
	if (rc > 0 && stays)
		t->class->barred = r->changes;
	else if (rc > 0)
		t->class->stuck = r->ends;
	if (rc < 0)
		free(shares);
	if (rc)
		return rc < 0 ? no_memory(r) : 1;
	list_remove(r->queue, r->waiting--, at);
	if (at)
		r->result.backfilled++;
	else
		r->reserved = 0;
	/* From here on the turn owns the shares. */
	t->shares = shares;
	t->end = r->now + t->job->run;
	t->due = r->now + time_limit(t);
	if (cluster_room_occupy(&r->room, shares))
		return err_set(r->err, "%s: job %s was given cores or memory that other jobs hold", r->policy->name,
			       t->job->name);
	list_insert(r->by_end, r->running, order_find(r->by_end, r->running, t, end_compare), t);
	list_insert(r->by_due, r->running, order_find(r->by_due, r->running, t, due_compare), t);
	r->running++;
	r->changes++;
	tally_room(&r->tally, &r->room, shares);
	tally_job(r, t->job, &judgement);
	if (r->watch && r->watch->started)
		r->watch->started(r->watch->user, t->job, shares, r->now);
	return 0;
}

static int queue_schedule(struct replay *r)
{
	int rc = 0;

	while (r->waiting && !(rc = queue_try(r, 0)))
		;
	if (rc < 0 || r->waiting < 2)
		return rc < 0 ? -1 : 0;
	first_reserve(r);
	for (size_t at = 1; at < r->waiting && at < REPLAY_DEPTH; at += rc)
		if ((rc = queue_try(r, at)) < 0)
			return -1;
	return 0;
}

static int pass_time(struct replay *r)
{
	while (r->running || r->come < r->n) {
		long long ends = r->running ? r->by_end[0]->end : LLONG_MAX;
		long long comes = r->come < r->n ? r->turns[r->come].job->submit : LLONG_MAX;
		double ms;

		r->now = ends < comes ? ends : comes;
		ms = r->now - r->tally.last;
		for (size_t i = 0; i < JUDGED_LEVELS; i++)
			r->tally.loose_time[i] += ms * r->tally.loose_now[i];
		r->tally.free_time += ms * r->room.total;
		r->tally.last = r->now;
		while (r->running && r->by_end[0]->end == r->now) {
			struct turn *t = r->by_end[0];

			list_remove(r->by_due, r->running, order_find(r->by_due, r->running, t, due_compare));
			list_remove(r->by_end, r->running--, 0);
			cluster_room_release(&r->room, t->shares);
			tally_room(&r->tally, &r->room, t->shares);
			if (r->watch && r->watch->ended)
				r->watch->ended(r->watch->user, t->job, t->shares, r->now);
			free(t->shares);
			t->shares = NULL;
			r->ends++;
			r->changes++;
			r->reserved = 0;
		}
		for (; r->come < r->n && r->turns[r->come].job->submit == r->now; r->come++)
			if (r->turns[r->come].class->refused)
				r->result.refused++;
			else
				r->queue[r->waiting++] = &r->turns[r->come];
		if (queue_schedule(r))
			return -1;
	}
	return 0;
}

/* --- begin and end --- */

#define REQUEST_KEYS (11 + 2 * PATH_STEPS_MAX)
#define STOCK_KEYS 6		/* of these, the first */

/* What makes the requests of two jobs equal. */
static void turn_key(const struct turn *t, unsigned long long key[REQUEST_KEYS])
{
	const struct request *q = &t->want;
	const unsigned long long own[] = { t->job->nodes, t->job->tasks, t->job->task_cpus, t->job->memory,
					   t->job->gpus, t->ours, q->fit, q->level, q->memory, q->path.steps,
					   q->path.kind };
	size_t n = sizeof(own) / sizeof(own[0]);

	memset(key, 0, REQUEST_KEYS * sizeof(*key));
	memcpy(key, own, t->ours ? sizeof(own) : STOCK_KEYS * sizeof(*own));
	for (unsigned i = 0; t->ours && i < q->path.steps; i++) {
		key[n++] = q->path.step[i].level;
		key[n++] = q->path.step[i].count;
	}
}

static int ask_compare(const void *a, const void *b)
{
	unsigned long long x[REQUEST_KEYS], y[REQUEST_KEYS];
	int order = 0;

	turn_key(*(struct turn *const *) a, x);
	turn_key(*(struct turn *const *) b, y);
	for (size_t i = 0; !order && i < REQUEST_KEYS; i++)
		order = COMPARE(x[i], y[i]);
	return order;
}

/* The room is still empty: a request that cannot be placed now never can. */
static int classes_find(struct replay *r)
{
	struct turn **order = r->by_end;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		order[i] = &r->turns[i];
	qsort(order, r->n, sizeof(*order), ask_compare);
	for (size_t i = 0; i < r->n; i++) {
		struct cluster_shares *shares = NULL;
		struct turn *t = order[i];
		int rc;

		if (i && !ask_compare(&order[i - 1], &order[i])) {
			t->class = order[i - 1]->class;
			continue;
		}
		t->class = &r->classes[n++];
		rc = t->job->nodes > r->cluster->n ? 1 :
			nodes_choose(r, &r->room, t, cluster_room_can(&r->room, t->job, level_within(t)), &shares);
		free(shares);
		t->class->refused = rc > 0;
		if (rc < 0)
			return no_memory(r);
	}
	return 0;
}

static int replay_init(struct replay *r, const struct jobs *jobs)
{
	size_t n = jobs->n + 1;

	r->n = jobs->n;
	r->now = r->tally.first = r->tally.last = jobs->n ? jobs->list[0].submit : 0;
	r->ends = r->changes = 1;
	r->turns = calloc(n, sizeof(*r->turns));
	r->classes = calloc(n, sizeof(*r->classes));
	r->queue = calloc(n, sizeof(*r->queue));
	r->by_end = calloc(n, sizeof(*r->by_end));
	r->by_due = calloc(n, sizeof(*r->by_due));
	r->nodes = calloc(r->cluster->n, sizeof(*r->nodes));
	r->tally.waits = malloc(n * sizeof(*r->tally.waits));
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		if (!(r->tally.loose[i] = calloc(r->cluster->n, sizeof(*r->tally.loose[i]))))
			return no_memory(r);
	if (!r->turns || !r->classes || !r->queue || !r->by_end || !r->by_due || !r->nodes || !r->tally.waits ||
	    !(r->placer = placer_new(r->cluster)) || cluster_room_init(&r->room, r->cluster, true) ||
	    cluster_room_init(&r->later, r->cluster, false))
		return no_memory(r);
	for (size_t i = 0; i < r->n; i++) {
		const struct past_job *job = &jobs->list[i];
		struct request want = job->asks ? job->request : r->policy->request;

		want.weight = r->policy->request.weight;
		want.memory = job->asks_memory ? job->request.memory : r->policy->request.memory;
		r->turns[i] = (struct turn){
			.job = job, .want = want, .ours = r->policy->kind == POLICY_FIT && want.fit != FIT_OFF,
		};
	}
	return classes_find(r);
}

int replay_run(const struct cluster *c, const struct jobs *jobs, const struct replay_policy *policy,
	       const struct replay_watch *watch, struct replay_result *out, struct err *e)
{
	struct replay r = { .cluster = c, .policy = policy, .watch = watch, .err = e };
	int rc = replay_init(&r, jobs);

	if (!rc)
		rc = pass_time(&r);
	if (!rc) {
		struct tally *t = &r.tally;
		double all = (double) (t->last - t->first) * r.cluster->cores;
		size_t n = r.result.jobs;

		*out = r.result;
		qsort(t->waits, n, sizeof(*t->waits), wait_compare);
		for (enum replay_class class = 0; class < REPLAY_CLASSES; class++)
			out->waits[class] = waits_of(t->waits, n, class);
		for (size_t i = 0; i < JUDGED_LEVELS; i++)
			out->loose[i] = share_of(t->loose_time[i], t->free_time);
		out->touched_to_ideal = share_of(t->ratios, n);
		out->utilisation = share_of(all - t->free_time, all);
		out->wait_median = n ? t->waits[(n - 1) / 2].ms : 0;
		out->makespan = t->last - t->first;
	}
	for (size_t i = 0; r.turns && i < r.n; i++)
		free(r.turns[i].shares);
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		free(r.tally.loose[i]);
	free(r.tally.waits);
	free(r.turns);
	free(r.classes);
	free(r.queue);
	free(r.by_end);
	free(r.by_due);
	free(r.nodes);
	free(r.plan);
	placer_free(r.placer);
	cluster_room_free(&r.room);
	cluster_room_free(&r.later);
	return rc;
}
