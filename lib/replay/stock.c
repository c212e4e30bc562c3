/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/replay_parts.h"

#include <stdlib.h>

#include "base/core_set.h"

/*
 * Slurm's best fit: the least that suffices, else the most. As in Slurm, a larger insufficient row may be preferred to
 * one that suffices.
 */
static bool fits_better(bool enough, unsigned long long size, bool best_enough, unsigned long long best)
{
	return enough ? !best_enough || size < best : size > best;
}

/* --- nodes --- */

/* Adjacent nodes that can all take their share of the job: Slurm's "consecutive nodes". */
struct row {
	unsigned first, last, nodes;
	unsigned long long cpus;
};

struct selection {
	const struct cluster_room *room;
	struct row *rows;
	size_t n;
	long long cpus;			/* still needed */
	unsigned left;			/* nodes still needed */
	unsigned *out;
	unsigned chosen;
};

static long long node_cpus(const struct cluster_room *r, unsigned node)
{
	return (long long) r->count[node] * r->cluster->nodes[node].kind->threads;
}

static void rows_find(struct selection *s, const struct past_job *job)
{
	bool open = false;

	for (unsigned i = 0; i < s->room->cluster->n; i++) {
		bool holds = cluster_room_holds(s->room, i, job, LEVEL_NODE);

		if (holds && !open)
			s->rows[s->n++] = (struct row){ .first = i };
		open = holds;
		if (!holds)
			continue;
		s->rows[s->n - 1].last = i;
		s->rows[s->n - 1].nodes++;
		s->rows[s->n - 1].cpus += node_cpus(s->room, i);
	}
}

static bool row_suffices(const struct selection *s, const struct row *row)
{
	return (long long) row->cpus >= s->cpus && row->nodes >= s->left;
}

static struct row *row_best(const struct selection *s)
{
	struct row *best = NULL;

	for (struct row *row = s->rows; row < s->rows + s->n; row++)
		if (row->nodes &&
		    (!best || fits_better(row_suffices(s, row), row->cpus, row_suffices(s, best), best->cpus)))
			best = row;
	return best;
}

/* A node provides all CPUs that it has, except one core for each further node. */
static void node_select(struct selection *s, unsigned node)
{
	long long has = node_cpus(s->room, node), threads = s->room->cluster->nodes[node].kind->threads;
	long long may = s->cpus - (s->left - 1) * threads;

	if (may < 1)
		may = 1;
	s->cpus -= has < may ? has : may;
	s->out[s->chosen++] = node;
	s->left--;
}

/* The last node: the smallest one that suffices. */
static void row_take_one(struct selection *s, const struct row *row)
{
	long best = -1;

	for (unsigned i = row->first; i <= row->last; i++)
		if (node_cpus(s->room, i) >= s->cpus && (best < 0 || node_cpus(s->room, i) < node_cpus(s->room, best)))
			best = i;
	node_select(s, best < 0 ? row->first : best);
}

static void row_select(struct selection *s, struct row *row)
{
	if (s->left == 1)
		row_take_one(s, row);
	else
		for (unsigned i = row->first; i <= row->last && s->left; i++)
			node_select(s, i);
	row->nodes = 0;
}

static int unsigned_compare(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int stock_nodes(const struct cluster_room *r, const struct past_job *job, unsigned *nodes)
{
	struct selection s = { .room = r, .left = job->nodes, .cpus = (long long) job->tasks * job->task_cpus,
			       .out = nodes };
	struct row *row;

	if (!(s.rows = malloc((r->cluster->n / 2 + 1) * sizeof(*s.rows))))
		return -1;
	rows_find(&s, job);
	while (s.left && (row = row_best(&s)))
		row_select(&s, row);
	free(s.rows);
	qsort(nodes, s.chosen, sizeof(*nodes), unsigned_compare);
	return s.left ? 1 : 0;
}

/* --- cores --- */

#define SOCKETS_MAX 1024u

struct dealing {
	const uint64_t *free;
	const struct cluster_ranges *sockets;
	unsigned at[SOCKETS_MAX];	/* by socket: where to search for its next core */
	unsigned left;			/* cores still needed */
	uint64_t *mask;
};

/* Adds the next free core of a socket to the mask; false when it has none. */
static bool socket_deal(struct dealing *d, size_t socket)
{
	const struct cluster_range *r = &d->sockets->list[socket];

	while (d->at[socket] < r->first + r->cores) {
		unsigned core = d->at[socket]++;

		if (!core_set_has(d->free, core))
			continue;
		core_set_add(d->mask, core);
		d->left--;
		return true;
	}
	return false;
}

static void socket_deal_many(struct dealing *d, size_t socket, unsigned cores)
{
	while (cores-- && d->left && socket_deal(d, socket))
		;
}

/* Fills each socket with whole tasks before the next one; tasks that no socket has room for are dealt out in turn. */
static void deal_tasks(struct dealing *d, unsigned task_cores)
{
	for (size_t i = 0; i < d->sockets->n; i++) {
		unsigned cores = cluster_range_count(d->free, d->sockets->list[i]);

		socket_deal_many(d, i, cores - cores % task_cores);
	}
}

static void deal_round(struct dealing *d)
{
	bool any = true;

	while (d->left && any) {
		any = false;
		for (size_t i = 0; i < d->sockets->n && d->left; i++)
			any |= socket_deal(d, i);
	}
}

/* Free cores of a socket that were not dealt yet. */
static unsigned socket_count(const struct dealing *d, size_t socket)
{
	const struct cluster_range *r = &d->sockets->list[socket];
	struct cluster_range rest = { d->at[socket], r->first + r->cores - d->at[socket] };

	return rest.cores ? cluster_range_count(d->free, rest) : 0;
}

static void deal_block(struct dealing *d)
{
	unsigned wanted = d->left, best_count;

	do {
		size_t best = 0;

		best_count = 0;
		for (size_t i = 0; i < d->sockets->n; i++) {
			unsigned count = socket_count(d, i);

			if (!count ||
			    (best_count && !fits_better(count >= wanted, count, best_count >= wanted, best_count)))
				continue;
			best = i;
			best_count = count;
		}
		socket_deal_many(d, best, best_count);
	} while (d->left && best_count);
}

/* Packages that do not contain all cores are not used as sockets. */
static const struct cluster_ranges *sockets_of(const struct cluster_kind *kind)
{
	const struct cluster_ranges *packages = &kind->at[LEVEL_PACKAGE];
	unsigned cores = 0;

	for (size_t i = 0; i < packages->n; i++)
		cores += packages->list[i].cores;
	return cores == kind->shape->cores && packages->n <= SOCKETS_MAX ? packages : &kind->at[LEVEL_NODE];
}

void stock_seat(const struct cluster_room *r, const struct past_job *job, enum stock_cores how,
		struct cluster_share *seat)
{
	const struct cluster_kind *kind = r->cluster->nodes[seat->node].kind;
	struct dealing d = { .free = cluster_room_node(r, seat->node), .left = seat->cores, .mask = seat->mask };

	d.sockets = sockets_of(kind);
	for (size_t i = 0; i < d.sockets->n; i++)
		d.at[i] = d.sockets->list[i].first;
	if (how == STOCK_BLOCK) {
		deal_block(&d);
		return;
	}
	if (job->task_cpus > 1)
		deal_tasks(&d, cluster_job_task_cores(job, kind));
	deal_round(&d);
}
