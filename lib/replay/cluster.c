/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "score/numa_memory.h"
#include "shape/hostlist.h"

/* --- kinds --- */

static bool is_innermost(const struct shape *s, size_t domain)
{
	const struct shape_domain *d = &s->domains[domain];

	for (size_t i = domain + 1; i < s->ndomains && s->domains[i].first < d->first + d->cores; i++)
		if (s->domains[i].level == d->level)
			return false;
	return true;
}

static int ranges_find(const struct shape *s, enum level level, struct cluster_ranges *out)
{
	struct cluster_range *list = malloc(s->ndomains * sizeof(*list));

	if (!list)
		return -1;
	out->list = list;
	for (size_t i = 0; i < s->ndomains; i++)
		if (s->domains[i].level == level && is_innermost(s, i))
			list[out->n++] = (struct cluster_range){ s->domains[i].first, s->domains[i].cores };
	return 0;
}

static int kind_init(struct cluster_kind *k, const struct shape *s)
{
	k->shape = s;
	k->threads = s->pus / s->cores;
	k->words = core_set_words(s->cores);
	for (size_t i = 0; i < s->ndomains; i++)
		k->memory += s->domains[i].memory >> 20;
	for (int level = LEVEL_NODE; level < LEVEL_CORE; level++) {
		if (ranges_find(s, level, &k->at[level]))
			return -1;
		if (k->at[level].n)
			continue;
		free(k->at[level].list);
		k->at[level] = k->at[level - 1];	/* shared */
	}
	return 0;
}

static int kinds_make(struct cluster *c, const struct snapshot *s, struct err *e)
{
	if (!(c->kinds = calloc(s->nshapes + 1, sizeof(*c->kinds))))
		return err_set(e, "out of memory");
	for (size_t i = 0; i < s->nshapes; i++) {
		const struct snapshot_shape *shape = &s->shapes[i];

		if (shape->shape->cores > CLUSTER_NODE_CORES)
			return err_set(e, "shape %s has more than %u cores", shape->name, CLUSTER_NODE_CORES);
		c->kinds[i].index = i;
		c->nkinds++;
		if (shape->shape->numas.count > c->numas_max)
			c->numas_max = shape->shape->numas.count;
		if (kind_init(&c->kinds[i], shape->shape))
			return err_set(e, "out of memory");
		if (c->kinds[i].words > c->words_max)
			c->words_max = c->kinds[i].words;
	}
	return 0;
}

/* --- nodes --- */

struct gathering {
	struct cluster *cluster;
	const struct cluster_kind *kind;
	struct err *err;
};

static int node_add(const char *name, void *user)
{
	struct gathering *g = user;
	struct cluster *c = g->cluster;

	char *copy;

	if (array_reserve(c->nodes, c->n, 1) || !(copy = strdup(name)))
		return err_set(g->err, "out of memory");
	c->nodes[c->n++] = (struct cluster_node){ .name = copy, .kind = g->kind };
	return 0;
}

static const struct cluster_kind *kind_of(const struct cluster *c, const struct shape *s)
{
	for (size_t i = 0; i < c->nkinds; i++)
		if (c->kinds[i].shape == s)
			return &c->kinds[i];
	return NULL;
}

static int node_compare(const void *a, const void *b)
{
	struct hostlist_name x = host_of(((const struct cluster_node *) a)->name),
		    y = host_of(((const struct cluster_node *) b)->name);

	return host_compare(&x, &y);
}

static int nodes_gather(struct cluster *c, const struct snapshot *s, struct err *e)
{
	struct gathering g = { .cluster = c, .err = e };
	struct hostlist_usage usage = {0};

	for (size_t i = 0; i < s->nnodes; i++) {
		g.kind = kind_of(c, s->nodes[i].shape);
		if (hostlist_expand_more(s->nodes[i].hosts, &usage, node_add, &g, e))
			return -1;
	}
	return c->n ? 0 : err_set(e, "the snapshot lists no nodes");
}

static int nodes_order(struct cluster *c, struct err *e)
{
	qsort(c->nodes, c->n, sizeof(*c->nodes), node_compare);
	for (size_t i = 0; i < c->n; i++) {
		struct cluster_node *node = &c->nodes[i];

		if (i && !strcmp(node[-1].name, node->name))
			return err_set(e, "the snapshot lists node %s twice", node->name);
		node->word = c->words;
		node->core = c->cores;
		c->words += node->kind->words;
		c->cores += node->kind->shape->cores;
	}
	return 0;
}

struct cluster *cluster_new(const struct snapshot *s, struct err *e)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c) {
		err_set(e, "out of memory");
		return NULL;
	}
	if (kinds_make(c, s, e) || nodes_gather(c, s, e) || nodes_order(c, e))
		goto error;
	return c;
error:
	cluster_free(c);
	return NULL;
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nkinds; i++)
		for (size_t level = 0; level < LEVEL_CORE; level++)
			if (!level || c->kinds[i].at[level].list != c->kinds[i].at[level - 1].list)
				free(c->kinds[i].at[level].list);
	for (size_t i = 0; i < c->n; i++)
		free(c->nodes[i].name);
	free(c->kinds);
	free(c->nodes);
	free(c);
}

bool cluster_has(const struct cluster *c, const char *name)
{
	struct cluster_node key = { .name = (char *) name };

	return bsearch(&key, c->nodes, c->n, sizeof(*c->nodes), node_compare) != NULL;
}

/* --- node shares --- */

unsigned cluster_job_task_cores(const struct past_job *job, const struct cluster_kind *kind)
{
	return job->task_cpus > kind->threads ? (job->task_cpus + kind->threads - 1) / kind->threads : 1;
}

unsigned cluster_job_cores(const struct past_job *job, unsigned tasks, const struct cluster_kind *kind)
{
	unsigned long long each = cluster_job_task_cores(job, kind), cores = tasks * each;

	if (each == 1)
		cores = ((unsigned long long) tasks * job->task_cpus + kind->threads - 1) / kind->threads;
	return cores < SCORE_MAX_CORES ? cores : SCORE_MAX_CORES + 1;
}

/* The most tasks of the job on a node. */
static unsigned job_node_tasks(const struct past_job *job)
{
	return (job->tasks + job->nodes - 1) / job->nodes;
}

static size_t words_of(const struct cluster *c, const unsigned *nodes, size_t n)
{
	size_t words = 0;

	for (size_t i = 0; i < n; i++)
		words += c->nodes[nodes[i]].kind->words;
	return words;
}

struct cluster_shares *cluster_seats_new(const struct cluster *c, const struct past_job *job, const unsigned *nodes)
{
	size_t n = job->nodes, head = sizeof(struct cluster_shares) + n * sizeof(struct cluster_share);
	struct cluster_shares *s = calloc(1, head + words_of(c, nodes, n) * sizeof(uint64_t));
	uint64_t *words = s ? (uint64_t *) ((char *) s + head) : NULL;

	if (!s)
		return NULL;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct cluster_kind *kind = c->nodes[nodes[i]].kind;
		unsigned tasks = job->tasks / job->nodes + (i < job->tasks % job->nodes);

		s->list[i] = (struct cluster_share){ nodes[i], tasks, cluster_job_cores(job, tasks, kind), words,
						    job->memory };
		words += kind->words;
	}
	return s;
}

/* --- rooms --- */

static int reach_init(struct cluster_room *r)
{
	const struct cluster *c = r->cluster;

	if (!(r->reach = calloc(c->nkinds, sizeof(*r->reach))))
		return -1;
	for (size_t i = 0; i < c->nkinds; i++)
		if (!(r->reach[i] = calloc(c->kinds[i].shape->cores + 1, sizeof(**r->reach))))
			return -1;
	for (size_t i = 0; i < c->n; i++)
		for (unsigned k = 0; k <= c->nodes[i].kind->shape->cores; k++)
			r->reach[c->nodes[i].kind->index][k]++;
	return 0;
}

int cluster_room_init(struct cluster_room *r, const struct cluster *c, bool with_reach)
{
	*r = (struct cluster_room){ .cluster = c, .words = calloc(c->words, sizeof(*r->words)),
			    .count = calloc(c->n, sizeof(*r->count)), .total = c->cores,
			    .held = calloc(c->n, sizeof(*r->held)), .used = calloc(c->cores, sizeof(*r->used)) };
	if (!r->words || !r->count || !r->held || !r->used || (with_reach && reach_init(r))) {
		cluster_room_free(r);
		return -1;
	}
	for (size_t i = 0; i < c->n; i++) {
		r->count[i] = c->nodes[i].kind->shape->cores;
		core_set_fill(&r->words[c->nodes[i].word], r->count[i]);
	}
	return 0;
}

void cluster_room_copy(struct cluster_room *to, const struct cluster_room *from)
{
	to->total = from->total;
	memcpy(to->words, from->words, from->cluster->words * sizeof(*to->words));
	memcpy(to->count, from->count, from->cluster->n * sizeof(*to->count));
	memcpy(to->held, from->held, from->cluster->n * sizeof(*to->held));
	memcpy(to->used, from->used, from->cluster->cores * sizeof(*to->used));
}

void cluster_room_free(struct cluster_room *r)
{
	for (size_t i = 0; r->reach && i < r->cluster->nkinds; i++)
		free(r->reach[i]);
	free(r->reach);
	free(r->words);
	free(r->count);
	free(r->held);
	free(r->used);
	*r = (struct cluster_room){0};
}

bool cluster_room_has_memory(const struct cluster_room *r, unsigned node, unsigned long long mb)
{
	unsigned long long has = r->cluster->nodes[node].kind->memory;

	return !mb || !has || r->held[node] + mb <= has;
}

static bool seat_is_free(const struct cluster_room *r, const struct cluster_share *s)
{
	const struct cluster_node *node = &r->cluster->nodes[s->node];

	return core_set_is_within(s->mask, &r->words[node->word], node->kind->words) &&
	       cluster_room_has_memory(r, s->node, s->memory);
}

/* Of free to occupied, or back. */
static void seat_turn(struct cluster_room *r, const struct cluster_share *s, int sign)
{
	const struct cluster_node *node = &r->cluster->nodes[s->node];
	unsigned long long each = s->memory * NUMA_MEMORY_UNIT / (s->cores + !s->cores);

	for (unsigned w = 0; w < node->kind->words; w++)
		r->words[node->word + w] ^= s->mask[w];
	r->held[s->node] += sign * s->memory;
	for (unsigned c = 0; each && c < node->kind->shape->cores; c++)
		if (core_set_has(s->mask, c))
			r->used[node->core + c] += sign * (uint32_t) each;
}

int cluster_room_occupy(struct cluster_room *r, const struct cluster_shares *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!seat_is_free(r, &s->list[i]))
			return -1;
	for (size_t i = 0; i < s->n; i++) {
		const struct cluster_share *seat = &s->list[i];
		unsigned *count = &r->count[seat->node];

		seat_turn(r, seat, 1);
		for (unsigned k = 0; r->reach && k < seat->cores; k++)
			r->reach[r->cluster->nodes[seat->node].kind->index][*count - k]--;
		*count -= seat->cores;
		r->total -= seat->cores;
	}
	return 0;
}

void cluster_room_release(struct cluster_room *r, const struct cluster_shares *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct cluster_share *seat = &s->list[i];
		unsigned *count = &r->count[seat->node];

		seat_turn(r, seat, -1);
		*count += seat->cores;
		r->total += seat->cores;
		for (unsigned k = 0; r->reach && k < seat->cores; k++)
			r->reach[r->cluster->nodes[seat->node].kind->index][*count - k]++;
	}
}

unsigned cluster_range_count(const uint64_t *words, struct cluster_range r)
{
	unsigned first = r.first / 64, last = (r.first + r.cores - 1) / 64, n = 0;

	for (unsigned w = first; w <= last; w++) {
		uint64_t bits = words[w];

		if (w == first)
			bits &= ~0ull << r.first % 64;
		if (w == last)
			bits &= ~0ull >> (63 - (r.first + r.cores - 1) % 64);
		n += __builtin_popcountll(bits);
	}
	return n;
}

bool cluster_room_holds(const struct cluster_room *r, unsigned node, const struct past_job *job, enum level within)
{
	const struct cluster_kind *kind = r->cluster->nodes[node].kind;
	const struct cluster_ranges *at = &kind->at[within];
	unsigned cores = cluster_job_cores(job, job_node_tasks(job), kind);

	if (r->count[node] < cores || !cluster_room_has_memory(r, node, job->memory))
		return false;
	for (size_t i = 0; within != LEVEL_NODE && i < at->n; i++)
		if (cluster_range_count(cluster_room_node(r, node), at->list[i]) >= cores)
			return true;
	return within == LEVEL_NODE;
}

bool cluster_room_can(const struct cluster_room *r, const struct past_job *job, enum level within)
{
	size_t nodes = 0;

	for (size_t i = 0; i < r->cluster->nkinds; i++) {
		const struct cluster_kind *kind = &r->cluster->kinds[i];
		unsigned cores = cluster_job_cores(job, job_node_tasks(job), kind);

		nodes += cores <= kind->shape->cores ? r->reach[i][cores] : 0;
	}
	if (nodes < job->nodes || (within == LEVEL_NODE && !job->memory))
		return nodes >= job->nodes;
	nodes = 0;
	for (size_t i = 0; nodes < job->nodes && i < r->cluster->n; i++)
		nodes += cluster_room_holds(r, i, job, within);
	return nodes >= job->nodes;
}
