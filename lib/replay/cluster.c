/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/cluster.h"

#include "base/array.h"
#include "score/numa_memory.h"
#include "shape/hostlist.h"

static int kind_init(struct cluster_kind *k, const struct shape *s, unsigned index)
{
	*k = (struct cluster_kind){ .shape = s, .index = index, .threads = s->pus / s->cores,
				    .words = core_set_words(s->cores) };
	for (size_t i = 0; i < s->ndomains; i++)
		k->memory += s->domains[i].memory >> 20;
	for (size_t i = 0; i < s->ndevices; i++)
		k->gpus += !strcmp(s->devices[i].type, "GPU");
	for (int level = LEVEL_NODE; level < LEVEL_CORE; level++) {
		/* The innermost domains of a level. */
		struct cluster_ranges *out = &k->at[level];

		if (!(out->list = malloc(s->ndomains * sizeof(*out->list))))
			return -1;
		for (size_t i = 0; i < s->ndomains; i++) {
			const struct shape_domain *d = &s->domains[i], *inner = d + 1, *end = s->domains + s->ndomains;

			while (inner < end && inner->first < d->first + d->cores && inner->level != level)
				inner++;
			if (d->level == level && (inner == end || inner->first >= d->first + d->cores))
				out->list[out->n++] = (struct cluster_range){ d->first, d->cores };
		}
		if (k->at[level].n)
			continue;
		free(k->at[level].list);
		k->at[level] = k->at[level - 1];	/* shared */
	}
	return 0;
}

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

static int node_compare(const void *a, const void *b)
{
	struct hostlist_name x = host_of(((const struct cluster_node *) a)->name),
		    y = host_of(((const struct cluster_node *) b)->name);

	return host_compare(&x, &y);
}

static int cluster_fill(struct cluster *c, const struct snapshot *s, struct err *e)
{
	struct gathering g = { .cluster = c, .err = e };
	struct hostlist_usage usage = {0};

	if (!(c->kinds = calloc(s->nshapes + 1, sizeof(*c->kinds))))
		return err_set(e, "out of memory");
	for (size_t i = 0; i < s->nshapes; i++) {
		const struct shape *shape = s->shapes[i].shape;

		if (shape->cores > CLUSTER_NODE_CORES)
			return err_set(e, "shape %s has more than %u cores", s->shapes[i].name, CLUSTER_NODE_CORES);
		c->nkinds++;
		if (kind_init(&c->kinds[i], shape, i))
			return err_set(e, "out of memory");
		c->numas_max = shape->numas.count > c->numas_max ? shape->numas.count : c->numas_max;
		c->words_max = c->kinds[i].words > c->words_max ? c->kinds[i].words : c->words_max;
	}
	for (size_t i = 0; i < s->nnodes; i++) {
		for (g.kind = c->kinds; g.kind->shape != s->nodes[i].shape; g.kind++)
			;
		if (hostlist_expand_more(s->nodes[i].hosts, &usage, node_add, &g, e))
			return -1;
	}
	if (!c->n)
		return err_set(e, "the snapshot lists no nodes");
	qsort(c->nodes, c->n, sizeof(*c->nodes), node_compare);
	for (size_t i = 0; i < c->n; i++) {
		struct cluster_node *node = &c->nodes[i];

		if (i && !strcmp(node[-1].name, node->name))
			return err_set(e, "the snapshot lists node %s twice", node->name);
		node->word = c->words;
		node->core = c->cores;
		c->words += node->kind->words;
		c->cores += node->kind->shape->cores;
		c->has_gpus |= node->kind->gpus > 0;
		if (!c->largest || node->kind->shape->cores > c->largest->shape->cores)
			c->largest = node->kind;
	}
	return 0;
}

struct cluster *cluster_new(const struct snapshot *s, struct err *e)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		err_set(e, "out of memory");
	if (c && cluster_fill(c, s, e) == 0)
		return c;
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
	unsigned long long cores = ((unsigned long long) tasks * job->task_cpus + kind->threads - 1) / kind->threads;

	return cores < SCORE_MAX_CORES ? cores : SCORE_MAX_CORES + 1;
}

/* Of the most tasks of the job on a node. */
static unsigned most_cores(const struct past_job *job, const struct cluster_kind *kind)
{
	return cluster_job_cores(job, (job->tasks + job->nodes - 1) / job->nodes, kind);
}

struct cluster_shares *cluster_shares_new(const struct cluster *c, const struct past_job *job, const unsigned *nodes)
{
	size_t n = job->nodes, words = 0, head = sizeof(struct cluster_shares) + n * sizeof(struct cluster_share);
	struct cluster_shares *s;
	uint64_t *mask;

	for (size_t i = 0; i < n; i++)
		words += c->nodes[nodes[i]].kind->words;
	if (!(s = calloc(1, head + words * sizeof(uint64_t))))
		return NULL;
	mask = (uint64_t *) ((char *) s + head);
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct cluster_kind *kind = c->nodes[nodes[i]].kind;
		unsigned tasks = job->tasks / job->nodes + (i < job->tasks % job->nodes);

		s->list[i] = (struct cluster_share){ nodes[i], tasks, cluster_job_cores(job, tasks, kind), mask,
						     job->memory, job->gpus };
		mask += kind->words;
	}
	return s;
}

/* --- rooms --- */

int cluster_room_init(struct cluster_room *r, const struct cluster *c, bool with_reach)
{
	*r = (struct cluster_room){ .cluster = c, .words = calloc(c->words, sizeof(*r->words)),
			    .count = calloc(c->n, sizeof(*r->count)), .total = c->cores,
			    .held = calloc(c->n, sizeof(*r->held)), .used = calloc(c->cores, sizeof(*r->used)),
			    .gpus = calloc(c->n, sizeof(*r->gpus)),
			    .reach = with_reach ? calloc(c->nkinds, sizeof(*r->reach)) : NULL };
	if (!r->words || !r->count || !r->held || !r->used || !r->gpus || (with_reach && !r->reach))
		goto error;
	for (size_t i = 0; with_reach && i < c->nkinds; i++)
		if (!(r->reach[i] = calloc(c->kinds[i].shape->cores + 1, sizeof(**r->reach))))
			goto error;
	for (size_t i = 0; i < c->n; i++) {
		r->count[i] = c->nodes[i].kind->shape->cores;
		core_set_fill(&r->words[c->nodes[i].word], r->count[i]);
		for (unsigned k = 0; with_reach && k <= r->count[i]; k++)
			r->reach[c->nodes[i].kind->index][k]++;
	}
	return 0;
error:
	cluster_room_free(r);
	return -1;
}

void cluster_room_copy(struct cluster_room *to, const struct cluster_room *from)
{
	const struct cluster *c = from->cluster;

	to->total = from->total;
	memcpy(to->words, from->words, c->words * sizeof(*to->words));
	memcpy(to->count, from->count, c->n * sizeof(*to->count));
	memcpy(to->held, from->held, c->n * sizeof(*to->held));
	memcpy(to->gpus, from->gpus, c->n * sizeof(*to->gpus));
	memcpy(to->used, from->used, c->cores * sizeof(*to->used));
}

void cluster_room_free(struct cluster_room *r)
{
	for (size_t i = 0; r->reach && i < r->cluster->nkinds; i++)
		free(r->reach[i]);
	free(r->reach);
	free(r->words);
	free(r->count);
	free(r->held);
	free(r->gpus);
	free(r->used);
	*r = (struct cluster_room){0};
}

bool cluster_room_has(const struct cluster_room *r, unsigned node, unsigned long long mb, unsigned gpus)
{
	const struct cluster_kind *kind = r->cluster->nodes[node].kind;

	return (!mb || !kind->memory || r->held[node] + mb <= kind->memory) &&
	       (!gpus || !r->cluster->has_gpus || r->gpus[node] + gpus <= kind->gpus);
}

/* From free to occupied (sign 1), or back. */
static void shares_turn(struct cluster_room *r, const struct cluster_shares *s, int sign)
{
	for (const struct cluster_share *h = s->list; h < s->list + s->n; h++) {
		const struct cluster_node *node = &r->cluster->nodes[h->node];
		unsigned long long each = h->memory * NUMA_MEMORY_UNIT / (h->cores + !h->cores);
		unsigned low = r->count[h->node] - (sign > 0 ? h->cores : 0);

		for (unsigned w = 0; w < node->kind->words; w++)
			r->words[node->word + w] ^= h->mask[w];
		r->held[h->node] += sign * h->memory;
		r->gpus[h->node] += sign * h->gpus;
		for (unsigned c = 0; each && c < node->kind->shape->cores; c++)
			if (core_set_has(h->mask, c))
				r->used[node->core + c] += sign * (uint32_t) each;
		for (unsigned k = 1; r->reach && k <= h->cores; k++)
			r->reach[node->kind->index][low + k] -= sign;
		r->count[h->node] -= sign * h->cores;
		r->total -= sign * (long long) h->cores;
	}
}

int cluster_room_occupy(struct cluster_room *r, const struct cluster_shares *s)
{
	for (const struct cluster_share *h = s->list; h < s->list + s->n; h++)
		if (!core_set_is_within(h->mask, cluster_room_node(r, h->node),
					r->cluster->nodes[h->node].kind->words) ||
		    !cluster_room_has(r, h->node, h->memory, h->gpus))
			return -1;
	shares_turn(r, s, 1);
	return 0;
}

void cluster_room_release(struct cluster_room *r, const struct cluster_shares *s)
{
	shares_turn(r, s, -1);
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
	unsigned cores = most_cores(job, kind);

	if (r->count[node] < cores || !cluster_room_has(r, node, job->memory, job->gpus))
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
		unsigned cores = most_cores(job, kind);

		nodes += cores <= kind->shape->cores ? r->reach[i][cores] : 0;
	}
	if (nodes < job->nodes || (within == LEVEL_NODE && !job->memory && !job->gpus))
		return nodes >= job->nodes;
	nodes = 0;
	for (size_t i = 0; nodes < job->nodes && i < r->cluster->n; i++)
		nodes += cluster_room_holds(r, i, job, within);
	return nodes >= job->nodes;
}
