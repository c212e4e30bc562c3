/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/chooser.h"

#include <stdlib.h>
#include <string.h>

/* Each examines all nodes. The counts can only be wrong for paths, on nodes with different threads per core. */
#define TRIES 4

/* --- candidates --- */

int candidate_node_compare(const struct candidate_node *a, const struct candidate_node *b)
{
	int rc;

	if (a->required != b->required)
		return a->required ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	if (a->devices_far != b->devices_far)
		return a->devices_far ? 1 : -1;
	if (a->devices_unserved != b->devices_unserved)
		return a->devices_unserved < b->devices_unserved ? -1 : 1;
	if (a->memory_far != b->memory_far)
		return a->memory_far ? 1 : -1;
	if (a->mixes_kinds != b->mixes_kinds)
		return a->mixes_kinds ? 1 : -1;
	if (a->tasks != b->tasks)
		return a->tasks > b->tasks ? -1 : 1;
	if (a->shares_cores != b->shares_cores)
		return a->shares_cores ? 1 : -1;
	if (a->spare != b->spare)
		return a->spare < b->spare ? -1 : 1;
	rc = a->cost == b->cost ? 0 : score_compare(a->cost, b->cost);
	return rc ? rc : a->node - b->node;
}

static int by_rank(const void *a, const void *b)
{
	return candidate_node_compare(a, b);
}

/* Most jobs want few nodes, and clusters have ten thousand: do not sort them all for these. */
#define FEW 64

void candidate_nodes_sort(struct candidate_node *list, unsigned count, unsigned n)
{
	if (n > FEW) {
		qsort(list, count, sizeof(*list), by_rank);
		return;
	}
	/* The first n of those before i are at the front, in order. */
	for (unsigned i = 1; n && i < count; i++) {
		unsigned last = i < n ? i : n, at = last;
		struct candidate_node c = list[i];

		while (at && candidate_node_compare(&c, &list[at - 1]) < 0)
			at--;
		if (at == last)
			continue;
		if (i >= n)
			list[i] = list[n - 1];
		memmove(&list[at + 1], &list[at], ((i < n ? i : n - 1) - at) * sizeof(*list));
		list[at] = c;
	}
}

bool shares_divide(struct chooser_share share[2], uint32_t tasks, uint32_t nodes)
{
	uint32_t each = tasks / nodes, more = tasks % nodes;

	share[0] = (struct chooser_share){ more ? more : nodes, more ? each + 1 : each };
	share[1] = (struct chooser_share){ more ? nodes - more : 0, each };
	return each;
}

/* --- choices --- */

int choice_init(struct choice *out, unsigned nodes)
{
	*out = (struct choice){ .list = malloc((nodes + 1) * sizeof(*out->list)),
				.chosen = calloc(nodes + 1, sizeof(*out->chosen)) };
	return out->list && out->chosen ? 0 : -1;
}

void choice_free(struct choice *out)
{
	free(out->list);
	free(out->chosen);
	*out = (struct choice){0};
}

void choice_add(struct choice *out, const struct candidate_node *c)
{
	out->list[out->count++] = *c;
	out->chosen[c->node] = true;
}

void choice_clear(struct choice *out)
{
	while (out->count)
		out->chosen[out->list[--out->count].node] = false;
}

/* --- numbers of nodes --- */

static bool share_take(struct chooser *c, struct choice *out, const struct chooser_share *share)
{
	if (!share->nodes)
		return true;
	c->count = c->find(c->user, share->tasks, out->chosen);
	if (c->count < share->nodes)
		return false;
	candidate_nodes_sort(c->list, c->count, share->nodes);
	for (uint32_t i = 0; i < share->nodes; i++)
		choice_add(out, &c->list[i]);
	return true;
}

static bool by_shares(struct chooser *c, struct choice *out, uint32_t nodes)
{
	choice_clear(out);
	c->count = 0;
	return shares_divide(c->share, c->tasks, nodes) && nodes <= c->nodes && share_take(c, out, &c->share[0]) &&
	       share_take(c, out, &c->share[1]);
}

/* How many nodes can take a number of tasks, for up to `most` tasks; nodes[0]: any number. */
struct room_count {
	uint32_t *nodes, most;
};

static bool room_count_init(struct room_count *r, const struct chooser *c)
{
	uint32_t least, most;

	*r = (struct room_count){ .most = c->capacity(c->user) };
	if (!(r->nodes = calloc(r->most + 2, sizeof(*r->nodes))))
		return false;
	for (unsigned i = 0; i < c->nodes; i++) {
		if (!(most = c->range(c->user, i, &least)))
			continue;
		r->nodes[0]++;
		r->nodes[least]++;
		r->nodes[most + 1]--;
	}
	for (uint32_t t = 2; t <= r->most; t++)
		r->nodes[t] += r->nodes[t - 1];
	return true;
}

/*
 * Nodes that can take more tasks can also take fewer, except with fixed numbers of cores: there the condition is
 * necessary but not sufficient.
 */
static bool room_count_holds(const struct room_count *r, const struct chooser *c, uint32_t nodes)
{
	const struct chooser_share *share = c->share;

	if (!shares_divide(c->share, c->tasks, nodes) || share[0].tasks > r->most ||
	    r->nodes[share[0].tasks] < share[0].nodes)
		return false;
	return !share[1].nodes || r->nodes[share[1].tasks] >= (c->fixed_cores ? share[1].nodes : nodes);
}

/* Tries the numbers of nodes after the first, which only a range or a requirement has. */
static bool by_counts(struct chooser *c, struct choice *out)
{
	uint32_t first = c->first, last = c->last, below = first - 1, tries = 0;
	struct room_count r;
	bool good = false;

	if (!room_count_init(&r, c))
		return false;
	if (below > r.nodes[0])
		below = r.nodes[0];
	for (uint32_t n = below; n >= last && n && n < first && !good && tries < TRIES; n--)
		good = room_count_holds(&r, c, n) && ++tries && by_shares(c, out, n);
	for (uint32_t n = first + 1; n > first && n <= last && n <= r.nodes[0] && !good && tries < TRIES; n++)
		good = room_count_holds(&r, c, n) && ++tries && by_shares(c, out, n);
	free(r.nodes);
	return good;
}

static bool by_numbers(struct chooser *c, struct choice *out)
{
	if (by_shares(c, out, c->first))
		return true;
	if (c->first == c->last)
		return false;
	return by_counts(c, out) || by_shares(c, out, c->min_nodes);
}

/* Fills the nodes that hold most tasks; the remaining tasks go to the node where they fit best. */
static bool by_fewest(struct chooser *c, struct choice *out)
{
	uint32_t held = 0;
	unsigned n = 0;

	choice_clear(out);
	c->count = c->find(c->user, 0, NULL);
	candidate_nodes_sort(c->list, c->count, c->count);
	while (n < c->count && held < c->tasks)
		held += c->list[n++].tasks;
	if (n < 2 || held < c->tasks || n > c->max_nodes)
		return false;
	for (unsigned i = 0; i + 1 < n; i++)
		choice_add(out, &c->list[i]);
	return share_take(c, out, &(struct chooser_share){ 1, c->tasks - (held - c->list[n - 1].tasks) });
}

bool chooser_run(struct chooser *c, struct choice *out)
{
	return by_numbers(c, out) || (c->any_nodes && by_fewest(c, out));
}
