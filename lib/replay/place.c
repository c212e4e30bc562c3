/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/place.h"

#include "base/core_set.h"
#include "base/order.h"
#include "score/chooser.h"
#include "score/numa_memory.h"

/* --- by Topiary's score --- */

/* Of a core that has no domain of the level, what counts instead, as in score.h; in the order of filling. */
static const struct {
	enum level level, instead;
} counted[] = {
	{ LEVEL_L2, LEVEL_CORE }, { LEVEL_PACKAGE, LEVEL_NODE }, { LEVEL_DIE, LEVEL_PACKAGE }, { LEVEL_NUMA,
												LEVEL_DIE },
	{ LEVEL_L3, LEVEL_L2 },
};

/* The levels that are judged; the last only by whether another choice is better. */
enum { LANES = JUDGED_LEVELS + 1 };
static const enum level lanes[LANES] = { LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3, LEVEL_DIE };

struct touch {
	unsigned n[LANES];	/* domains of the level that contain some of the cores */
};

struct placer {
	const struct cluster *cluster;
	struct fit_cache cache;
	struct candidate_node *list;	/* space for one choice */
	struct score_limit *limits;	/* space for those of one node */
	uint64_t *cores;		/* space for those of one node */
	unsigned **around;		/* by kind and level: the domain that counts for each core */
	unsigned *seen, now;		/* by domain: when it was last counted */
	struct cluster_room empty;
	long *sample;			/* a node of each kind, -1: none */
	bool *taken;			/* nodes of the job that is judged */
};

/* One job's choice: the state of the chooser's callbacks. */
struct search {
	struct placer *placer;
	const struct cluster_room *room;
	const struct past_job *job;
	const struct request *want;
};

static int placer_fill(struct placer *p)
{
	const struct cluster *c = p->cluster;
	size_t domains = 0;

	for (size_t i = 0; i < c->nkinds; i++) {
		const struct shape *s = c->kinds[i].shape;
		unsigned **of_kind = &p->around[i * LEVEL_CORE];

		p->sample[i] = -1;
		domains = s->ndomains + s->cores > domains ? s->ndomains + s->cores : domains;
		for (size_t k = 0; k < sizeof(counted) / sizeof(counted[0]); k++) {
			enum level level = counted[k].level, instead = counted[k].instead;
			unsigned *around = of_kind[level] = malloc(s->cores * sizeof(*around));

			if (!around)
				return -1;
			for (unsigned core = 0; core < s->cores; core++)
				around[core] = instead == LEVEL_CORE ? s->ndomains + core :
					instead == LEVEL_NODE ? 0 : of_kind[instead][core];
			for (size_t d = 0; d < s->ndomains; d++)
				for (unsigned n = 0; s->domains[d].level == level && n < s->domains[d].cores; n++)
					around[s->domains[d].first + n] = d;
		}
	}
	for (size_t i = 0; i < c->n; i++)
		p->sample[c->nodes[i].kind->index] = i;
	return (p->seen = calloc(domains + 1, sizeof(*p->seen))) ? cluster_room_init(&p->empty, c, false) : -1;
}

struct placer *placer_new(const struct cluster *c)
{
	struct placer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct placer){
		.cluster = c, .list = calloc(c->n, sizeof(*p->list)), .taken = calloc(c->n, sizeof(*p->taken)),
		.limits = calloc(c->numas_max + 1, sizeof(*p->limits)), .cores = calloc(c->words_max + 1,
											sizeof(*p->cores)),
		.around = calloc(c->nkinds * LEVEL_CORE + 1, sizeof(*p->around)),
		.sample = malloc((c->nkinds + 1) * sizeof(*p->sample)),
	};
	if (p->list && p->taken && p->limits && p->cores && p->around && p->sample && !placer_fill(p))
		return p;
	placer_free(p);
	return NULL;
}

void placer_free(struct placer *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->around && i < p->cluster->nkinds * LEVEL_CORE; i++)
		free(p->around[i]);
	fit_cache_clear(&p->cache);
	if (p->empty.cluster)
		cluster_room_free(&p->empty);
	free(p->list);
	free(p->taken);
	free(p->limits);
	free(p->cores);
	free(p->around);
	free(p->seen);
	free(p->sample);
	free(p);
}

static void fits_begin(struct placer *p)
{
	fit_cache_begin(&p->cache, 0);
	fit_cache_allow(&p->cache, UINT_MAX);
}

static unsigned limits_find(const struct search *s, unsigned node, unsigned cores)
{
	const struct cluster_node *n = &s->room->cluster->nodes[node];
	const struct numa_memory m = { .capacity = n->kind->memory, .held = s->room->held[node],
				       .used = s->room->used + n->core, .wanted = s->job->memory };

	return numa_memory_limits(n->kind->shape, &m, cores, cluster_room_node(s->room, node), s->placer->limits,
				  s->placer->cluster->numas_max);
}

/* {0} where tasks of one core, or none, are to stay whole. */
static struct score_task task_of(const struct past_job *job, const struct cluster_kind *kind, unsigned task_cores)
{
	return task_cores > 1 ? (struct score_task){ job->task_cpus, kind->threads } : (struct score_task){0};
}

/* The cost of so many tasks on the node, with task_cores of each; false if they do not fit. */
static bool node_score(const struct search *s, unsigned node, uint32_t tasks, unsigned task_cores,
		       struct candidate_node *out)
{
	const struct cluster_kind *kind = s->room->cluster->nodes[node].kind;
	struct score_need need = { .cores = cluster_job_cores(s->job, tasks, kind), .task_cores = task_cores,
				   .task = task_of(s->job, kind, task_cores),
				   .fit = s->want->fit, .level = s->want->level, .path = &s->want->path };

	if (s->room->count[node] < need.cores || !cluster_room_has(s->room, node, s->job->memory, s->job->gpus))
		return false;
	if (s->want->memory != FIT_OFF) {
		need.nlimits = limits_find(s, node, need.cores);
		need.limits = s->placer->limits;
	}
	*out = (struct candidate_node){ .node = node, .tasks = tasks, .need_cores = need.cores,
					.worth = chooser_worth(!s->job->gpus && kind->gpus > s->room->gpus[node],
							       kind->shape->cores, kind->memory),
					.free = need.fit == FIT_SPREAD ? 0 :
						chooser_free(s->room->count[node], need.cores,
							     s->room->count[node] == kind->shape->cores,
							     s->job->nodes > 1),
					.queue_first = request_queue_first(s->want, s->job->limit / 60000) };
	for (;; need.nlimits = 0, out->memory_far = true) {
		out->cost = fit_cost_of_kind(&s->placer->cache, kind->shape, cluster_room_node(s->room, node), &need,
					     s->placer->cores, NULL, &out->fit, &out->mixes_kinds);
		if (out->cost || !need.nlimits || s->want->memory != FIT_PREFER)
			return out->cost;
	}
}

static unsigned nodes_find(void *user, uint32_t tasks, const bool *chosen)
{
	const struct search *s = user;
	unsigned n = 0;

	for (unsigned i = 0; i < s->room->cluster->n; i++)
		n += !chosen[i] && node_score(s, i, tasks, cluster_job_task_cores(s->job,
										  s->room->cluster->nodes[i].kind),
					      &s->placer->list[n]);
	return n;
}

ORDER(by_node, struct candidate_node, x->node - y->node)

int placer_choose(struct placer *p, const struct cluster_room *r, const struct past_job *job,
		  const struct request *want,
		  unsigned *nodes, struct cluster_shares **out)
{
	struct search search = { p, r, job, want };
	struct chooser_share share[2];
	struct chooser chooser = {
		.tasks = job->tasks, .min_nodes = job->nodes, .max_nodes = job->nodes, .first = job->nodes,
		.last = job->nodes, .share = share, .nodes = p->cluster->n, .list = p->list, .user = &search,
		.find = nodes_find,
	};
	struct cluster_shares *shares = NULL;
	struct choice choice;
	int rc = -1;

	fits_begin(p);
	if (choice_init(&choice, p->cluster->n))
		goto end;
	if (!chooser_run(&chooser, &choice)) {
		rc = p->cache.failed ? -1 : 1;
		goto end;
	}
	/* The chosen nodes in the cluster's order, each with its tasks and the cores of its cost. */
	qsort(choice.list, choice.count, sizeof(*choice.list), by_node);
	for (unsigned i = 0; i < choice.count; i++)
		nodes[i] = choice.list[i].node;
	if (!(shares = cluster_shares_new(p->cluster, job, nodes)))
		goto end;
	for (unsigned i = 0; i < choice.count; i++) {
		const struct candidate_node *c = &choice.list[i];
		const uint64_t *cores = fit_cores(&p->cache, c->fit, c->need_cores);

		if (!cores)
			goto end;
		shares->list[i].tasks = c->tasks;
		shares->list[i].cores = c->need_cores;
		memcpy(shares->list[i].mask, cores, p->cluster->nodes[c->node].kind->words * sizeof(*cores));
	}
	*out = shares;
	shares = NULL;
	rc = 0;
end:
	free(shares);
	choice_free(&choice);
	return rc;
}

/* --- the audit --- */

enum level judged_level(enum judged_level j)
{
	return lanes[j];
}

static struct touch touch_of(struct placer *p, const struct cluster_kind *kind, const uint64_t *cores)
{
	struct touch t = {0};

	for (int lane = 0; lane < LANES; lane++) {
		const unsigned *around = p->around[kind->index * LEVEL_CORE + lanes[lane]];

		p->now++;
		core_set_each(core, cores, kind->words) {
			t.n[lane] += p->seen[around[core]] != p->now;
			p->seen[around[core]] = p->now;
		}
	}
	return t;
}

/* Packages, NUMA nodes and L3 caches together. */
static unsigned touch_sum(const struct touch *t)
{
	return t->n[JUDGED_PACKAGE] + t->n[JUDGED_NUMA] + t->n[JUDGED_L3];
}

/* Whether so many cores are those of whole tasks. */
static bool is_whole(struct score_task task, unsigned cores)
{
	return score_task_span(task, score_task_room(task, cores)) == cores;
}

/* Is no task cut at a NUMA node or an L3 cache, as far as the kind has one that is large enough for a task? */
static bool is_uncut(const struct placer *p, const struct cluster_kind *kind, const uint64_t *cores,
		     unsigned task_cores, struct score_task task)
{
	for (int lane = JUDGED_NUMA; task_cores > 1 && lane <= JUDGED_L3; lane++) {
		const unsigned *around = p->around[kind->index * LEVEL_CORE + lanes[lane]];
		unsigned largest = 0, last = UINT_MAX, run = 0;

		for (unsigned c = 0; c < kind->shape->cores; c++)
			if (around[c] < kind->shape->ndomains && kind->shape->domains[around[c]].cores > largest)
				largest = kind->shape->domains[around[c]].cores;
		if (largest < task_cores)
			continue;
		core_set_each(core, cores, kind->words) {
			if (around[core] != last && !is_whole(task, run))
				return false;
			run = around[core] == last ? run + 1 : 1;
			last = around[core];
		}
		if (!is_whole(task, run))
			return false;
	}
	return true;
}

/* What so many tasks touch on a node by the cores that the score prefers: 1; 0 if they do not fit uncut; -1. */
static int touch_best(const struct search *s, unsigned node, unsigned tasks, unsigned task_cores, struct touch *out)
{
	const struct cluster_kind *kind = s->room->cluster->nodes[node].kind;
	struct candidate_node c;
	const uint64_t *cores;

	if (!node_score(s, node, tasks, task_cores, &c))
		return s->placer->cache.failed ? -1 : 0;
	if (!(cores = fit_cores(&s->placer->cache, c.fit, c.need_cores)))
		return -1;
	*out = touch_of(s->placer, kind, cores);
	return is_uncut(s->placer, kind, cores, task_cores, task_of(s->job, kind, task_cores));
}

/*
 * A share against placements on its own node and on each that the job does not have: those with room for its memory,
 * near the cores unless the share's is far.
 */
static int judge_touch(const struct search *s, const struct cluster_share *share, bool far, struct judgement *out)
{
	static const struct request any = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_OFF };
	static const struct request near = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_REQUIRE };
	struct placer *p = s->placer;
	struct past_job of_cores = *s->job;
	const struct touch had = touch_of(p, p->cluster->nodes[share->node].kind, share->mask);
	const struct search empty = { p, &p->empty, &of_cores, &any };
	const struct search others = { p, s->room, s->job, far ? &any : &near };
	struct touch best, least = had;
	unsigned ideal = touch_sum(&had);

	of_cores.memory = 0;
	for (size_t i = 0; i < p->cluster->nkinds; i++) {
		int rc = p->sample[i] < 0 ? 0 : touch_best(&empty, p->sample[i], share->tasks, 1, &best);

		if (rc < 0)
			return -1;
		for (int lane = 0; rc && lane < LANES; lane++)
			least.n[lane] = best.n[lane] < least.n[lane] ? best.n[lane] : least.n[lane];
		ideal = rc && touch_sum(&best) < ideal ? touch_sum(&best) : ideal;
	}
	out->touched += touch_sum(&had);
	out->ideal += ideal;
	for (unsigned i = 0; memcmp(&had, &least, sizeof(had)) && i < p->cluster->n; i++) {
		unsigned task_cores = cluster_job_task_cores(s->job, p->cluster->nodes[i].kind);
		bool fewer = false, more = false;
		int rc;

		if (p->taken[i] && i != share->node)
			continue;
		if ((rc = touch_best(&others, i, share->tasks, task_cores, &best)) < 0)
			return -1;
		for (int lane = 0; rc && lane < LANES; lane++) {
			bool less = best.n[lane] < had.n[lane];

			fewer |= less;
			more |= best.n[lane] > had.n[lane];
			if (lane < JUDGED_LEVELS) {
				out->split_any[lane] |= less;
				out->split_own[lane] |= less && i == share->node;
			}
		}
		out->dominated |= fewer && !more;
	}
	return 0;
}

/* Is a share's memory far, by the limits of the score: more cores of a NUMA node than it has memory for? */
static bool judge_memory(const struct search *s, const struct cluster_share *share, struct judgement *out)
{
	static const struct request require = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_REQUIRE };
	const struct search near = { s->placer, s->room, s->job, &require };
	unsigned n = limits_find(s, share->node, share->cores);
	bool far = false;

	for (unsigned i = 0; i < n; i++) {
		const struct score_limit *l = &s->placer->limits[i];

		far |= cluster_range_count(share->mask, (struct cluster_range){ l->first, l->cores }) > l->most;
	}
	out->memory_far |= far;
	for (unsigned i = 0; far && !out->memory_needless && i < s->room->cluster->n; i++) {
		struct candidate_node c;

		out->memory_needless = (!s->placer->taken[i] || i == share->node) &&
			node_score(&near, i, share->tasks, 1, &c);
	}
	return far;
}

int placer_judge(struct placer *p, const struct cluster_room *r, const struct past_job *job,
		 const struct cluster_shares *shares, struct judgement *out)
{
	static const struct request want = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_OFF };
	const struct search s = { p, r, job, &want };
	struct judgement v = {0};
	int rc = 0;

	fits_begin(p);
	for (size_t i = 0; i < shares->n; i++)
		p->taken[shares->list[i].node] = true;
	for (size_t i = 0; !rc && i < shares->n; i++) {
		const struct cluster_share *share = &shares->list[i];
		const struct cluster_ranges *packages = &p->cluster->nodes[share->node].kind->at[LEVEL_PACKAGE];

		for (const struct cluster_range *k = packages->list; k < packages->list + packages->n; k++) {
			unsigned taken = cluster_range_count(share->mask, *k);

			v.broken += taken && taken < k->cores &&
				cluster_range_count(cluster_room_node(r, share->node), *k) == k->cores;
		}
		rc = judge_touch(&s, share, judge_memory(&s, share, &v), &v);
	}
	for (size_t i = 0; i < shares->n; i++)
		p->taken[shares->list[i].node] = false;
	if (!rc)
		*out = v;
	return rc;
}

/* --- Slurm without Topiary --- */

/*
 * Slurm's best fit: the least that suffices, else the most. As in Slurm, a larger insufficient row may be preferred to
 * one that suffices.
 */
static bool fits_better(bool enough, unsigned long long size, bool best_enough, unsigned long long best)
{
	return enough ? !best_enough || size < best : size > best;
}

/* Adjacent nodes that can all take their share of the job: Slurm's "consecutive nodes". */
struct row {
	unsigned first, last, nodes;
	long long cpus;
};

struct selection {
	const struct cluster_room *room;
	long long cpus;			/* still needed */
	unsigned left;			/* nodes still needed */
	unsigned *out, chosen;
};

static long long node_cpus(const struct cluster_room *r, unsigned node)
{
	return (long long) r->count[node] * r->cluster->nodes[node].kind->threads;
}

/* A node provides all CPUs that it has, except one core for each further node. */
static void node_select(struct selection *s, unsigned node)
{
	long long has = node_cpus(s->room, node), threads = s->room->cluster->nodes[node].kind->threads;
	long long may = s->cpus - (s->left - 1) * threads;

	may = may < 1 ? 1 : may;
	s->cpus -= has < may ? has : may;
	s->out[s->chosen++] = node;
	s->left--;
}

ORDER(unsigned_compare, unsigned, COMPARE(*x, *y))

/* Ascending, into nodes[job->nodes]. */
static int stock_nodes(const struct cluster_room *r, const struct past_job *job, unsigned *nodes)
{
	struct selection s = { .room = r, .left = job->nodes, .cpus = (long long) job->tasks * job->task_cpus,
			       .out = nodes };
	struct row *rows = malloc((r->cluster->n / 2 + 1) * sizeof(*rows));
	bool open = false;
	size_t n = 0;

	if (!rows)
		return -1;
	for (unsigned i = 0; i < r->cluster->n; i++) {
		bool holds = cluster_room_holds(r, i, job, LEVEL_NODE);

		if (holds && !open)
			rows[n++] = (struct row){ .first = i };
		open = holds;
		if (!holds)
			continue;
		rows[n - 1].last = i;
		rows[n - 1].nodes++;
		rows[n - 1].cpus += node_cpus(r, i);
	}
	while (s.left) {
		struct row *best = NULL;
		long only = -1;

		for (struct row *row = rows; row < rows + n; row++)
			if (row->nodes && (!best || fits_better(row->cpus >= s.cpus && row->nodes >= s.left, row->cpus,
								best->cpus >= s.cpus && best->nodes >= s.left,
								best->cpus)))
				best = row;
		if (!best)
			break;
		if (s.left > 1) {
			for (unsigned i = best->first; i <= best->last && s.left; i++)
				node_select(&s, i);
		} else {	/* the last node: the smallest one that suffices */
			for (unsigned i = best->first; i <= best->last; i++)
				if (node_cpus(r, i) >= s.cpus && (only < 0 || node_cpus(r, i) < node_cpus(r, only)))
					only = i;
			node_select(&s, only < 0 ? best->first : only);
		}
		best->nodes = 0;
	}
	free(rows);
	qsort(nodes, s.chosen, sizeof(*nodes), unsigned_compare);
	return s.left ? 1 : 0;
}

#define SOCKETS_MAX 1024u

struct dealing {
	const uint64_t *free;
	const struct cluster_ranges *sockets;
	unsigned at[SOCKETS_MAX];	/* by socket: where to search for its next core */
	unsigned left;			/* cores still needed */
	uint64_t *mask;
};

/* Adds the next free cores of a socket to the mask; returns how many it had. */
static unsigned socket_deal(struct dealing *d, size_t socket, unsigned cores)
{
	const struct cluster_range *r = &d->sockets->list[socket];
	unsigned dealt = 0;

	for (; dealt < cores && d->left && d->at[socket] < r->first + r->cores; d->at[socket]++)
		if (core_set_has(d->free, d->at[socket])) {
			core_set_add(d->mask, d->at[socket]);
			d->left--;
			dealt++;
		}
	return dealt;
}

static void deal_cyclic(struct dealing *d, unsigned task_cores)
{
	/* Each socket with whole tasks before the next one; tasks that no socket has room for are dealt out in turn. */
	for (size_t i = 0; task_cores && i < d->sockets->n; i++) {
		unsigned cores = cluster_range_count(d->free, d->sockets->list[i]);

		socket_deal(d, i, cores - cores % task_cores);
	}
	for (unsigned dealt = 1; d->left && dealt;) {
		dealt = 0;
		for (size_t i = 0; i < d->sockets->n; i++)
			dealt += socket_deal(d, i, 1);
	}
}

static void deal_block(struct dealing *d)
{
	unsigned wanted = d->left, best_count;

	do {
		size_t best = 0;

		best_count = 0;
		for (size_t i = 0; i < d->sockets->n; i++) {
			const struct cluster_range *r = &d->sockets->list[i];
			struct cluster_range rest = { d->at[i], r->first + r->cores - d->at[i] };
			unsigned count = rest.cores ? cluster_range_count(d->free, rest) : 0;

			if (!count ||
			    (best_count && !fits_better(count >= wanted, count, best_count >= wanted, best_count)))
				continue;
			best = i;
			best_count = count;
		}
		socket_deal(d, best, best_count);
	} while (d->left && best_count);
}

int stock_choose(const struct cluster_room *r, const struct past_job *job, bool block, unsigned *nodes,
		 struct cluster_shares **out)
{
	int rc = stock_nodes(r, job, nodes);
	struct cluster_shares *shares;

	if (rc)
		return rc;
	if (!(shares = cluster_shares_new(r->cluster, job, nodes)))
		return -1;
	for (size_t i = 0; i < shares->n; i++) {
		struct cluster_share *share = &shares->list[i];
		const struct cluster_kind *kind = r->cluster->nodes[share->node].kind;
		struct dealing d = { .free = cluster_room_node(r, share->node), .left = share->cores,
				    .mask = share->mask,
				     .sockets = &kind->at[LEVEL_PACKAGE] };
		unsigned cores = 0;

		/* Packages that do not contain all cores are not used as sockets. */
		for (size_t k = 0; k < d.sockets->n; k++)
			cores += d.sockets->list[k].cores;
		if (cores != kind->shape->cores || d.sockets->n > SOCKETS_MAX)
			d.sockets = &kind->at[LEVEL_NODE];
		for (size_t k = 0; k < d.sockets->n; k++)
			d.at[k] = d.sockets->list[k].first;
		if (block)
			deal_block(&d);
		else
			deal_cyclic(&d, job->task_cpus > 1 ? cluster_job_task_cores(job, kind) : 0);
	}
	*out = shares;
	return 0;
}
