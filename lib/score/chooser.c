/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/chooser.h"

/* Each examines all nodes. The counts can only be wrong for paths, on nodes with different threads per core. */
#define TRIES 4

/* --- candidates --- */

#define MEMORY_STEP_BITS 16	/* 64 GB: nodes of one purchase may have a little more or less */

uint64_t chooser_worth(bool gpus, unsigned cores, uint64_t memory_mb)
{
	return (uint64_t) gpus << 63 | (uint64_t) cores << 32 | (uint32_t) (memory_mb >> MEMORY_STEP_BITS);
}

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* "beyond" and "cuts", and "touched", are the first counts of a cost: all but the last of its first word; two words. */
static int cost_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row row)
{
	if (a->cost == b->cost)
		return 0;
	if (row == CHOOSER_WHOLE)
		return order(a->cost->word[0] >> 16, b->cost->word[0] >> 16);
	if (row == CHOOSER_TOUCHED && a->cost->word[0] == b->cost->word[0])
		return order(a->cost->word[1], b->cost->word[1]);
	return row == CHOOSER_TOUCHED ? order(a->cost->word[0], b->cost->word[0]) : score_compare(a->cost, b->cost);
}

static int row_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row row)
{
	switch (row) {
	case CHOOSER_REQUIRED:
		return order(b->required, a->required);
	case CHOOSER_WEIGHT:
		return order(a->weight, b->weight);
	case CHOOSER_DEVICES:
		return order(a->devices_far, b->devices_far);
	case CHOOSER_UNSERVED:
		return order(a->devices_unserved, b->devices_unserved);
	case CHOOSER_MEMORY:
		return order(a->memory_far, b->memory_far);
	case CHOOSER_KINDS:
		return order(a->mixes_kinds, b->mixes_kinds);
	case CHOOSER_TASKS:
		return order(b->tasks, a->tasks);
	case CHOOSER_SHARING:
		return order(a->shares_cores, b->shares_cores);
	case CHOOSER_SPARE:
		return order(a->spare, b->spare);
	case CHOOSER_FRONT:
		return order(a->front, b->front);
	case CHOOSER_WORTH:
		return order(a->worth, b->worth);
	case CHOOSER_FREE:
		return order(a->free, b->free);
	case CHOOSER_INDEX:
		return order(a->node, b->node);
	default:
		return cost_compare(a, b, row);
	}
}

/* row: the first that differs, or NULL. */
static int compare_up_to(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row last,
			 enum chooser_row *row)
{
	enum chooser_row at = CHOOSER_REQUIRED;
	int rc;

	while (!(rc = row_compare(a, b, at)) && at < last)
		at++;
	if (row)
		*row = at;
	return rc;
}

int candidate_node_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row *row)
{
	return compare_up_to(a, b, CHOOSER_INDEX, row);
}

static int by_rank(const void *a, const void *b)
{
	return candidate_node_compare(a, b, NULL);
}

/*
 * Pareto dominance: whether the job would touch fewer domains of some level on a, and more of none. L2 caches are left
 * out: most have one core.
 */
static bool dominates(const struct candidate_node *a, const struct candidate_node *b)
{
	bool less = false;

	for (enum level level = LEVEL_PACKAGE; level <= LEVEL_L3; level++) {
		unsigned x = score_count(a->cost, SCORE_TOUCHED, level), y = score_count(b->cost, SCORE_TOUCHED, level);

		if (x > y)
			return false;
		less |= x < y;
	}
	return less;
}

#define FRONT_LIKES 256
#define FRONT_COSTS 64		/* of more different ones the last may be in one front with a better one */

struct fronts {
	const struct candidate_node *of[FRONT_COSTS];	/* sorted by fronts_compare: dominating ones come first */
	unsigned front[FRONT_COSTS], n;
	const struct candidate_node *like[FRONT_LIKES];	/* hashed by cost: the last node seen with it */
};

static int fronts_compare(const struct candidate_node *a, const struct candidate_node *b)
{
	int rc = compare_up_to(a, b, CHOOSER_WHOLE, NULL);

	return rc ? rc : cost_compare(a, b, CHOOSER_TOUCHED);
}

/* The front of a node: 0, or the next after the last one with a node that dominates it. */
static unsigned fronts_find(const struct fronts *f, const struct candidate_node *c)
{
	unsigned front = 0;

	for (unsigned i = 0; i < f->n; i++) {
		if (compare_up_to(f->of[i], c, CHOOSER_WHOLE, NULL))
			continue;
		if (!cost_compare(f->of[i], c, CHOOSER_TOUCHED))
			return f->front[i];
		if (f->front[i] >= front && dominates(f->of[i], c))
			front = f->front[i] + 1;
	}
	return front;
}

/* An earlier node with the same cost, which the cache has once, and equal in the rows before it; else this one. */
static const struct candidate_node *fronts_like(struct fronts *f, const struct candidate_node *c)
{
	const struct candidate_node **like = &f->like[(uintptr_t) c->cost / sizeof(*c->cost) % FRONT_LIKES];

	if (!*like || (*like)->cost != c->cost || fronts_compare(*like, c))
		*like = c;
	return *like;
}

/* Not needed where all nodes are worth the same: the order of the domains touched has what dominates first. */
static void fronts_set(struct candidate_node *list, unsigned count)
{
	struct fronts f = { .n = 0 };
	unsigned same = 0, all;

	while (same < count && list[same].worth == list[0].worth)
		list[same++].front = 0;
	for (const struct candidate_node *c = list; same < count && c < list + count; c++)
		if (fronts_like(&f, c) == c) {
			unsigned at = f.n;

			while (at && fronts_compare(c, f.of[at - 1]) < 0)
				at--;
			if (at == FRONT_COSTS || (at && !fronts_compare(c, f.of[at - 1])))
				continue;
			f.n += f.n < FRONT_COSTS;
			memmove(&f.of[at + 1], &f.of[at], (f.n - 1 - at) * sizeof(*f.of));
			f.of[at] = c;
		}
	for (all = f.n, f.n = 0; f.n < all; f.n++)
		f.front[f.n] = fronts_find(&f, f.of[f.n]);
	memset(f.like, 0, sizeof(f.like));
	for (unsigned i = 0; same < count && i < count; i++) {
		const struct candidate_node *like = fronts_like(&f, &list[i]);

		list[i].front = like == &list[i] ? fronts_find(&f, like) : like->front;
	}
}

/* Most jobs want few nodes, and clusters have ten thousand: do not sort them all for these. */
#define FEW 64

void candidate_nodes_sort(struct candidate_node *list, unsigned count, unsigned n)
{
	fronts_set(list, count);
	if (n > FEW) {
		qsort(list, count, sizeof(*list), by_rank);
		return;
	}
	/* The first n of those before i are at the front, in order. */
	for (unsigned i = 1; n && i < count; i++) {
		unsigned last = i < n ? i : n, at = last;
		struct candidate_node c = list[i];

		while (at && by_rank(&c, &list[at - 1]) < 0)
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
struct capacities {
	uint32_t *nodes, most;
};

/*
 * Nodes that can take more tasks can also take fewer, except with fixed numbers of cores: there the condition is
 * necessary but not sufficient.
 */
static bool capacities_hold(const struct capacities *r, const struct chooser *c, uint32_t nodes)
{
	const struct chooser_share *share = c->share;

	if (!shares_divide(c->share, c->tasks, nodes) || share[0].tasks > r->most ||
	    r->nodes[share[0].tasks] < share[0].nodes)
		return false;
	return !share[1].nodes || r->nodes[share[1].tasks] >= (c->fixed_cores ? share[1].nodes : nodes);
}

/* By even shares: the first number of nodes, then those that only a range or a requirement has, then the fewest. */
static bool by_numbers(struct chooser *c, struct choice *out)
{
	uint32_t first = c->first, last = c->last, below = first - 1, tries = 0, least, most;
	struct capacities r = {0};
	bool good = by_shares(c, out, first);

	if (good || first == last)
		return good;
	r.most = c->capacity(c->user);
	r.nodes = calloc(r.most + 2, sizeof(*r.nodes));
	for (unsigned i = 0; r.nodes && i < c->nodes; i++) {
		if (!(most = c->range(c->user, i, &least)))
			continue;
		r.nodes[0]++;
		r.nodes[least]++;
		r.nodes[most + 1]--;
	}
	if (!r.nodes)
		return by_shares(c, out, c->min_nodes);
	for (uint32_t t = 2; t <= r.most; t++)
		r.nodes[t] += r.nodes[t - 1];
	if (below > r.nodes[0])
		below = r.nodes[0];
	for (uint32_t n = below; n >= last && n && n < first && !good && tries < TRIES; n--)
		good = capacities_hold(&r, c, n) && ++tries && by_shares(c, out, n);
	for (uint32_t n = first + 1; n > first && n <= last && n <= r.nodes[0] && !good && tries < TRIES; n++)
		good = capacities_hold(&r, c, n) && ++tries && by_shares(c, out, n);
	free(r.nodes);
	return good || by_shares(c, out, c->min_nodes);
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
