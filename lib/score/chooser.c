/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/chooser.h"

#include "base/array.h"
#include "base/order.h"

/* Each examines all nodes. The counts can only be wrong for paths, on nodes with different threads per core. */
#define TRIES 4

/* --- candidates --- */

#define MEMORY_STEP_BITS 16	/* 64 GB: nodes of one purchase may have a little more or less */

uint64_t chooser_worth(bool gpus, unsigned cores, uint64_t memory_mb)
{
	return (uint64_t) gpus << 63 | (uint64_t) cores << 32 | (uint32_t) (memory_mb >> MEMORY_STEP_BITS);
}

unsigned chooser_free(unsigned free, unsigned need, bool idle, bool several)
{
	unsigned last = !several ? 0 : idle ? 2 : free == need;

	return last << 16 | free;
}

/* "beyond" and "cuts", and "touched", are the first counts of a cost: all but the last of its first word; two words. */
static int cost_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row row)
{
	if (a->cost == b->cost)
		return 0;
	if (row == CHOOSER_WHOLE)
		return COMPARE(a->cost->word[0] >> 16, b->cost->word[0] >> 16);
	if (row == CHOOSER_TOUCHED && a->cost->word[0] == b->cost->word[0])
		return COMPARE(a->cost->word[1], b->cost->word[1]);
	return row == CHOOSER_TOUCHED ? COMPARE(a->cost->word[0], b->cost->word[0]) : score_compare(a->cost, b->cost);
}

static int row_compare(const struct candidate_node *a, const struct candidate_node *b, enum chooser_row row)
{
	switch (row) {
	case CHOOSER_REQUIRED:
		return COMPARE(b->required, a->required);
	case CHOOSER_WEIGHT:
		return COMPARE(a->weight, b->weight);
	case CHOOSER_DEVICES:
		return COMPARE(a->devices_far, b->devices_far);
	case CHOOSER_UNSERVED:
		return COMPARE(a->devices_unserved, b->devices_unserved);
	case CHOOSER_MEMORY:
		return COMPARE(a->memory_far, b->memory_far);
	case CHOOSER_KINDS:
		return COMPARE(a->mixes_kinds, b->mixes_kinds);
	case CHOOSER_TASKS:
		return COMPARE(b->tasks, a->tasks);
	case CHOOSER_SHARING:
		return COMPARE(a->shares_cores, b->shares_cores);
	case CHOOSER_SPARE:
		return COMPARE(a->spare, b->spare);
	case CHOOSER_FRONT:
		return COMPARE(a->front, b->front);
	case CHOOSER_WORTH:
		return COMPARE(a->worth, b->worth);
	case CHOOSER_FREE:
		return COMPARE(a->free, b->free);
	case CHOOSER_INDEX:
		return COMPARE(a->node, b->node);
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

ORDER(by_rank, struct candidate_node, candidate_node_compare(x, y, NULL))

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

/*
 * Not needed where all nodes are worth the same, or that comes first: the order of the domains touched has what
 * dominates first.
 */
static void fronts_set(struct candidate_node *list, unsigned count)
{
	struct fronts f = { .n = 0 };
	unsigned same = 0, all;

	while (same < count && (list[same].queue_first || list[same].worth == list[0].worth))
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
	out->uneven = 0;
	while (out->count)
		out->chosen[out->list[--out->count].node] = false;
}

/* --- numbers of nodes --- */

/* but: by node, those that are no choice; NULL: those that are chosen already. */
static bool share_take(struct chooser *c, struct choice *out, const struct chooser_share *share, const bool *but)
{
	if (!share->nodes)
		return true;
	c->count = c->find(c->user, share->tasks, but ? but : out->chosen);
	if (c->count < share->nodes)
		return false;
	candidate_nodes_sort(c->list, c->count, share->nodes);
	for (uint32_t i = 0; i < share->nodes; i++)
		choice_add(out, &c->list[i]);
	return true;
}

static bool has_required(const struct chooser *c, const struct choice *out)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < out->count; i++)
		n += out->list[i].required;
	return n >= c->required;
}

static bool by_shares(struct chooser *c, struct choice *out, uint32_t nodes)
{
	choice_clear(out);
	c->count = 0;
	return shares_divide(c->share, c->tasks, nodes) && nodes <= c->nodes &&
	       share_take(c, out, &c->share[0], NULL) && share_take(c, out, &c->share[1], NULL) && has_required(c, out);
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
	c->share[0] = c->share[1] = (struct chooser_share){0};	/* what a node takes of any number of nodes */
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
	return share_take(c, out, &(struct chooser_share){ 1, c->tasks - (held - c->list[n - 1].tasks) }, NULL) &&
	       has_required(c, out);
}

/* --- uneven divisions --- */

int chooser_division_add(struct chooser_division *d, const uint64_t *holds, uint64_t weight, bool required)
{
	size_t bytes = core_set_words(d->tasks + 1) * sizeof(*holds);
	struct chooser_kind *kind;

	for (size_t i = 0; i < d->nkinds && !required; i++)
		if (!d->kinds[i].required && d->kinds[i].weight == weight && !memcmp(d->kinds[i].holds, holds, bytes)) {
			d->kinds[i].nodes++;
			return i;
		}
	if (!(kind = array_add(d->kinds, d->nkinds)))
		return -1;
	*kind = (struct chooser_kind){ .holds = malloc(bytes), .weight = weight, .nodes = 1, .required = required };
	if (!kind->holds) {
		d->nkinds--;
		return -1;
	}
	memcpy(kind->holds, holds, bytes);
	return d->nkinds - 1;
}

void chooser_division_free(struct chooser_division *d)
{
	for (size_t i = 0; i < d->nkinds; i++)
		free(d->kinds[i].holds);
	free(d->kinds);
	free(d->parts);
	*d = (struct chooser_division){0};
}

/*
 * One node after another may be used or not: for each and each number of nodes used so far, the set of the numbers of
 * tasks that these can hold. Of a kind no more nodes count than a division can have.
 */
#define DIVISION_TASKS_MAX 65536u
#define DIVISION_WORDS_MAX (1u << 20)	/* of all these sets */
#define DIVISION_STEPS_MAX (1u << 25)	/* words that are moved for them: some ten milliseconds */

struct division_sets {
	unsigned *slots;	/* the kind of each node */
	size_t nslots, words;
	uint32_t nodes;		/* the most that are used */
	uint64_t *reach;
};

static uint64_t *reach_at(const struct division_sets *s, size_t slot, uint32_t nodes)
{
	return s->reach + (slot * (s->nodes + 1) + nodes) * s->words;
}

/* to |= from shifted by so many members. */
static void set_shift_or(uint64_t *to, const uint64_t *from, size_t words, unsigned by)
{
	for (size_t w = words; w-- > by / 64;) {
		uint64_t low = by % 64 && w > by / 64 ? from[w - by / 64 - 1] >> (64 - by % 64) : 0;

		to[w] |= from[w - by / 64] << by % 64 | low;
	}
}

/* The nodes that count for so many; false: there are too many. */
static bool sets_begin(const struct chooser_division *d, struct division_sets *s, uint32_t nodes)
{
	uint64_t steps = 0, slots = 0;

	s->nodes = nodes;
	s->words = core_set_words(d->tasks + 1);
	for (size_t i = 0; i < d->nkinds; i++) {
		uint64_t n = d->kinds[i].nodes < nodes ? d->kinds[i].nodes : nodes;

		slots += n;
		steps += n * nodes * s->words * (1 + core_set_count(d->kinds[i].holds, s->words));
	}
	if ((slots + 1) * (nodes + 1) * s->words > DIVISION_WORDS_MAX || steps > DIVISION_STEPS_MAX)
		return false;
	s->slots = malloc((slots + 1) * sizeof(*s->slots));
	s->reach = calloc((slots + 1) * (nodes + 1) * s->words, sizeof(*s->reach));
	return true;
}

static int by_weight(const void *a, const void *b, void *kinds)
{
	unsigned i = *(const unsigned *) a, j = *(const unsigned *) b;
	const struct chooser_kind *kind = kinds;

	return COMPARE(kind[i].weight, kind[j].weight) ?: COMPARE(i, j);
}

static void sets_fill(const struct chooser_division *d, struct division_sets *s)
{
	for (size_t i = 0; i < d->nkinds; i++)
		for (uint32_t n = 0; n < d->kinds[i].nodes && n < s->nodes; n++)
			s->slots[s->nslots++] = i;
	qsort_r(s->slots, s->nslots, sizeof(*s->slots), by_weight, d->kinds);
	core_set_add(reach_at(s, 0, 0), 0);
	for (size_t i = 0; i < s->nslots; i++)
		for (uint32_t n = 0; n <= s->nodes; n++) {
			const struct chooser_kind *kind = &d->kinds[s->slots[i]];
			uint64_t *to = reach_at(s, i + 1, n);

			if (!kind->required)
				memcpy(to, reach_at(s, i, n), s->words * sizeof(*to));
			if (n)
				core_set_each(t, kind->holds, s->words)
					set_shift_or(to, reach_at(s, i, n - 1), s->words, t);
		}
}

/* Back from the end: a node is used only where those before it do not suffice, with about an even share of the rest. */
static void parts_read(struct chooser_division *d, const struct division_sets *s, uint32_t nodes)
{
	uint32_t left = d->tasks;

	d->nparts = 0;
	for (size_t i = s->nslots; i-- > 0 && nodes;) {
		const struct chooser_kind *kind = &d->kinds[s->slots[i]];
		uint32_t best = 0, even = (left + nodes - 1) / nodes;

		if (!kind->required && core_set_has(reach_at(s, i, nodes), left))
			continue;
		core_set_each(t, kind->holds, s->words) {
			uint32_t off = (uint32_t) t > even ? t - even : even - t,
				 was = best > even ? best - even : even - best;

			if ((uint32_t) t <= left && (!best || off < was) &&
			    core_set_has(reach_at(s, i, nodes - 1), left - t))
				best = t;
		}
		d->parts[d->nparts++] = (struct chooser_part){ s->slots[i], best };
		left -= best;
		nodes--;
	}
}

int chooser_division_find(struct chooser_division *d)
{
	uint32_t all = 0, largest = 0, least, most, limit;
	struct division_sets s = {0};
	int rc = 1;

	if (d->tasks > DIVISION_TASKS_MAX)
		return -1;
	for (size_t i = 0; i < d->nkinds; i++) {
		all += d->kinds[i].nodes;
		core_set_each(t, d->kinds[i].holds, core_set_words(d->tasks + 1))
			largest = (uint32_t) t > largest ? (uint32_t) t : largest;
	}
	limit = d->max_nodes < d->tasks ? d->max_nodes : d->tasks;
	limit = limit < all ? limit : all;
	if (!largest || limit < d->min_nodes)
		return 1;
	least = (d->tasks - 1) / largest + 1;
	least = least < d->min_nodes ? d->min_nodes : least;
	if (least > limit)
		return 1;
	for (most = limit; !sets_begin(d, &s, most); most = most / 2 > least ? most / 2 : least)
		if (most == least)
			return -1;
	d->parts = malloc((most + 1) * sizeof(*d->parts));
	if (!s.slots || !s.reach || !d->parts)
		rc = -1;
	else
		sets_fill(d, &s);
	for (uint32_t n = least; rc > 0 && n <= most; n++)
		if (core_set_has(reach_at(&s, s.nslots, n), d->tasks)) {
			parts_read(d, &s, n);
			rc = 0;
		}
	free(s.slots);
	free(s.reach);
	return rc > 0 && most < limit ? -1 : rc;
}

/* The best nodes of each kind for each number of tasks; false: that number is one of no candidate after all. */
static bool parts_take(struct chooser *c, struct choice *out, const struct chooser_division *d, const int *kinds,
		       bool *others)
{
	choice_clear(out);
	for (uint32_t i = 0; i < d->nparts; i++) {
		const struct chooser_part *p = &d->parts[i];
		struct chooser_share share = { 0, p->tasks };
		bool before = false;

		for (uint32_t k = 0; k < d->nparts; k++) {
			bool same = d->parts[k].kind == p->kind && d->parts[k].tasks == p->tasks;

			share.nodes += same;
			before |= same && k < i;
		}
		for (unsigned n = 0; n < c->nodes && !before; n++)
			others[n] = kinds[n] != (int) p->kind || out->chosen[n];
		if (!before && !share_take(c, out, &share, others))
			return false;
	}
	for (unsigned n = 0; n < c->nodes; n++)
		out->uneven += kinds[n] >= 0;
	return true;
}

static bool by_division(struct chooser *c, struct choice *out)
{
	struct chooser_division d = { .tasks = c->tasks, .min_nodes = c->min_nodes, .max_nodes = c->max_nodes };
	uint32_t most = c->tasks - c->min_nodes + 1, left = c->tries;
	unsigned words = c->tasks > DIVISION_TASKS_MAX ? 0 : core_set_words(c->tasks + 1);
	bool *others = calloc(c->nodes + 1, sizeof(*others)), good = false;
	int *kinds = malloc((c->nodes + 1) * sizeof(*kinds));
	uint64_t *holds = malloc((words + 1) * sizeof(*holds));
	int rc = words && others && kinds && holds ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < c->nodes; i++) {
		struct candidate_node one = {0};
		uint32_t tried;

		kinds[i] = -1;
		c->cut |= !left;
		if (!left)
			continue;
		memset(holds, 0, words * sizeof(*holds));
		tried = c->holds(c->user, i, most, holds, &one);
		left -= tried < left ? tried : left;
		if (core_set_count(holds, words))
			rc = (kinds[i] = chooser_division_add(&d, holds, one.weight, one.required)) < 0 ? -1 : 0;
	}
	if (rc == 0 && (rc = chooser_division_find(&d)) == 0)
		good = parts_take(c, out, &d, kinds, others) && has_required(c, out);
	c->cut = !good && (c->cut || rc < 0);
	chooser_division_free(&d);
	free(others);
	free(kinds);
	free(holds);
	return good;
}

bool chooser_run(struct chooser *c, struct choice *out)
{
	return by_numbers(c, out) || (c->any_nodes && by_fewest(c, out)) ||
	       (c->holds && c->max_nodes > 1 && c->tasks >= c->min_nodes && by_division(c, out));
}
