/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/judge.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/core_set.h"
#include "score/fit_cache.h"
#include "score/numa_memory.h"

/*
 * The number of domains that contain some cores, four counts in one word. The levels of the lanes, and the substitute
 * for a core that has no domain of the level, which are also those of score.h.
 */
enum lane { LANE_PACKAGE, LANE_DIE, LANE_NUMA, LANE_L3, LANES };
static const struct {
	enum level level, instead;
} lanes[] = {
	[LANE_PACKAGE] = { LEVEL_PACKAGE, LEVEL_NODE },
	[LANE_DIE] = { LEVEL_DIE, LEVEL_PACKAGE },
	[LANE_NUMA] = { LEVEL_NUMA, LEVEL_DIE },
	[LANE_L3] = { LEVEL_L3, LEVEL_L2 },
};

static const struct {
	enum level level;
	enum lane lane;
} judged[] = {
	[JUDGED_PACKAGE] = { LEVEL_PACKAGE, LANE_PACKAGE },
	[JUDGED_NUMA] = { LEVEL_NUMA, LANE_NUMA },
	[JUDGED_L3] = { LEVEL_L3, LANE_L3 },
};

enum level judge_level(enum judge_level j)
{
	return judged[j].level;
}

/* The cores of one package, NUMA node or L3 cache of a kind. */
struct whole {
	const struct cluster_kind *kind;
	unsigned cores;
	uint64_t *mask;
};

struct judge {
	const struct cluster *cluster;
	struct fit_cache cache;
	unsigned **around;		/* by kind and level: the domain that counts for each core */
	unsigned *seen, now;		/* by domain: when it was last counted */
	struct cluster_room empty;
	long *sample;			/* a node of each kind, -1: none */
	struct whole *wholes;
	size_t nwholes;
	bool *taken;			/* nodes of the current job */
	double *left;			/* scratch space: MB, by NUMA node of a node */
};

/* One node share to be judged. */
struct judged_share {
	struct judge *j;
	const struct cluster_room *room;
	const struct past_job *job;
	const struct cluster_share *seat;
	uint64_t touch;
};

static unsigned touch_count(uint64_t touch, enum lane lane)
{
	return touch >> 16 * lane & 0xffff;
}

/* Whether no lane of a exceeds that of b. */
static bool touch_within(uint64_t a, uint64_t b)
{
	const uint64_t high = 0x8000800080008000ull;

	return (((b | high) - a) & high) == high;
}

static uint64_t touch_least(uint64_t a, uint64_t b)
{
	uint64_t least = 0;

	for (int lane = 0; lane < LANES; lane++) {
		uint64_t x = touch_count(a, lane), y = touch_count(b, lane);

		least |= (x < y ? x : y) << 16 * lane;
	}
	return least;
}

/* Packages, NUMA nodes and L3 caches together. */
static unsigned touch_sum(uint64_t t)
{
	return touch_count(t, LANE_PACKAGE) + touch_count(t, LANE_NUMA) + touch_count(t, LANE_L3);
}

/* --- constants of the cluster --- */

/* The innermost domain of a level around each core; if there is none, that of another level, or the core itself. */
static int around_fill(struct judge *j, const struct cluster_kind *kind, enum level level, enum level instead)
{
	const struct shape *s = kind->shape;
	unsigned **of_kind = &j->around[kind->index * LEVEL_CORE], *around = malloc(s->cores * sizeof(*around));

	if (!(of_kind[level] = around))
		return -1;
	for (unsigned c = 0; c < s->cores; c++)
		around[c] = instead == LEVEL_CORE ? s->ndomains + c : instead == LEVEL_NODE ? 0 : of_kind[instead][c];
	for (size_t d = 0; d < s->ndomains; d++)
		for (unsigned c = 0; s->domains[d].level == level && c < s->domains[d].cores; c++)
			around[s->domains[d].first + c] = d;
	return 0;
}

static int arounds_fill(struct judge *j)
{
	size_t domains = 0;

	if (!(j->around = calloc(j->cluster->nkinds * LEVEL_CORE + 1, sizeof(*j->around))))
		return -1;
	for (size_t i = 0; i < j->cluster->nkinds; i++) {
		const struct cluster_kind *kind = &j->cluster->kinds[i];

		if (kind->shape->ndomains + kind->shape->cores > domains)
			domains = kind->shape->ndomains + kind->shape->cores;
		if (around_fill(j, kind, LEVEL_L2, LEVEL_CORE))
			return -1;
		for (int lane = 0; lane < LANES; lane++)
			if (around_fill(j, kind, lanes[lane].level, lanes[lane].instead))
				return -1;
	}
	return (j->seen = calloc(domains + 1, sizeof(*j->seen))) ? 0 : -1;
}

static unsigned level_count(struct judge *j, const struct cluster_kind *kind, enum level level, const uint64_t *cores)
{
	const unsigned *around = j->around[kind->index * LEVEL_CORE + level];
	unsigned n = 0;

	j->now++;
	core_set_each(core, cores, kind->words) {
		n += j->seen[around[core]] != j->now;
		j->seen[around[core]] = j->now;
	}
	return n;
}

static uint64_t touch_of(struct judge *j, const struct cluster_kind *kind, const uint64_t *cores)
{
	uint64_t touch = 0;

	for (int lane = 0; lane < LANES; lane++)
		touch += (uint64_t) level_count(j, kind, lanes[lane].level, cores) << 16 * lane;
	return touch;
}

static bool is_judged(enum level level)
{
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		if (judged[i].level == level)
			return true;
	return false;
}

static int whole_add(struct judge *j, const struct cluster_kind *kind, const struct shape_domain *d)
{
	uint64_t *mask;

	if (array_reserve(j->wholes, j->nwholes, 1) || !(mask = calloc(kind->words, sizeof(*mask))))
		return -1;
	core_set_add_range(mask, d->first, d->cores);
	j->wholes[j->nwholes++] = (struct whole){ kind, d->cores, mask };
	return 0;
}

static int wholes_find(struct judge *j)
{
	for (size_t i = 0; i < j->cluster->nkinds; i++) {
		const struct cluster_kind *kind = &j->cluster->kinds[i];

		for (size_t d = 0; d < kind->shape->ndomains; d++)
			if (is_judged(kind->shape->domains[d].level) && whole_add(j, kind, &kind->shape->domains[d]))
				return -1;
	}
	return 0;
}

static int samples_find(struct judge *j)
{
	const struct cluster *c = j->cluster;

	if (!(j->sample = malloc(c->nkinds * sizeof(*j->sample))))
		return -1;
	for (size_t i = 0; i < c->nkinds; i++)
		j->sample[i] = -1;
	for (size_t i = 0; i < c->n; i++)
		j->sample[c->nodes[i].kind->index] = i;
	return 0;
}

struct judge *judge_new(const struct cluster *c)
{
	struct judge *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct judge){ .cluster = c, .taken = calloc(c->n, sizeof(*j->taken)),
			     .left = calloc(c->numas_max + 1, sizeof(*j->left)) };
	if (j->taken && j->left && !arounds_fill(j) && !cluster_room_init(&j->empty, c, false) && !samples_find(j) &&
	    !wholes_find(j))
		return j;
	judge_free(j);
	return NULL;
}

void judge_free(struct judge *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->nwholes; i++)
		free(j->wholes[i].mask);
	free(j->wholes);
	for (size_t i = 0; j->around && i < j->cluster->nkinds * LEVEL_CORE; i++)
		free(j->around[i]);
	free(j->around);
	free(j->seen);
	fit_cache_clear(&j->cache);
	if (j->empty.cluster)
		cluster_room_free(&j->empty);
	free(j->sample);
	free(j->taken);
	free(j->left);
	free(j);
}

/* --- other placements --- */

/* Is no task cut at a NUMA node or an L3 cache, as far as the kind has one that is large enough for a task? */
static bool is_uncut(const struct judge *j, const struct cluster_kind *kind, const uint64_t *cores, unsigned task_cores)
{
	for (int lane = LANE_NUMA; task_cores > 1 && lane <= LANE_L3; lane++) {
		const unsigned *around = j->around[kind->index * LEVEL_CORE + lanes[lane].level];
		unsigned largest = 0, last = UINT_MAX, run = 0;

		for (unsigned c = 0; c < kind->shape->cores; c++)
			if (around[c] < kind->shape->ndomains && kind->shape->domains[around[c]].cores > largest)
				largest = kind->shape->domains[around[c]].cores;
		if (largest < task_cores)
			continue;
		core_set_each(core, cores, kind->words) {
			if (around[core] != last && run % task_cores)
				return false;
			run = around[core] == last ? run + 1 : 1;
			last = around[core];
		}
		if (run % task_cores)
			return false;
	}
	return true;
}

/* What the share's tasks touch on a node by the cores that the score prefers: 1; 0 if they do not fit uncut; -1. */
static int touch_best(const struct judged_share *h, const struct cluster_room *r, unsigned node, unsigned task_cores,
		      uint64_t *out)
{
	static const struct request_path none;
	const struct cluster_kind *kind = r->cluster->nodes[node].kind;
	const struct score_need need = {
		.cores = cluster_job_cores(h->job, h->seat->tasks, kind), .task_cores = task_cores, .fit = FIT_PREFER,
		.level = LEVEL_NODE, .path = &none,
	};
	struct fit_cache *cache = &h->j->cache;
	const uint64_t *cores;
	struct node_fit *fit;

	if (r->count[node] < need.cores || !fit_cost(cache, kind->shape, cluster_room_node(r, node), &need, &fit))
		return cache->failed ? -1 : 0;
	if (!(cores = fit_cores(cache, fit, need.cores)))
		return -1;
	*out = touch_of(h->j, kind, cores);
	return is_uncut(h->j, kind, cores, task_cores);
}

/* The minimum of each lane, and the least sum of lanes, over the empty nodes of all kinds. */
static int empty_least(const struct judged_share *h, uint64_t *least, unsigned *sum)
{
	uint64_t touch;

	*least = UINT64_MAX / 2;
	*sum = touch_sum(h->touch);
	for (size_t i = 0; i < h->j->cluster->nkinds; i++) {
		int rc = h->j->sample[i] < 0 ? 0 : touch_best(h, &h->j->empty, h->j->sample[i], 1, &touch);

		if (rc < 0)
			return -1;
		if (!rc)
			continue;
		*least = touch_least(*least, touch);
		if (touch_sum(touch) < *sum)
			*sum = touch_sum(touch);
	}
	return 0;
}

static void note_splits(const struct judged_share *h, uint64_t least, bool split[JUDGED_LEVELS])
{
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		split[i] |= touch_count(least, judged[i].lane) < touch_count(h->touch, judged[i].lane);
}

/* Compares the share with placements on another node that the job does not have, or on its own. */
static int compare_node(const struct judged_share *h, unsigned node, struct judgement *out)
{
	const struct cluster_kind *kind = h->j->cluster->nodes[node].kind;
	uint64_t touch;
	int rc = touch_best(h, h->room, node, cluster_job_task_cores(h->job, kind), &touch);

	if (rc <= 0)
		return rc;
	out->dominated |= touch != h->touch && touch_within(touch, h->touch);
	if (node == h->seat->node)
		note_splits(h, touch, out->split_own);
	note_splits(h, touch, out->split_any);
	return 0;
}

static int compare_all(const struct judged_share *h, struct judgement *out)
{
	for (unsigned i = 0; i < h->j->cluster->n; i++)
		if ((!h->j->taken[i] || i == h->seat->node) && compare_node(h, i, out))
			return -1;
	return 0;
}

/* --- exact fits --- */

/* Whether all free cores of the domain belong to the share, and the share is inside it. */
static bool seat_fills(const struct judged_share *h, const struct whole *d)
{
	const uint64_t *free_cores = cluster_room_node(h->room, h->seat->node), *mask = h->seat->mask;

	for (unsigned w = 0; w < d->kind->words; w++)
		if (mask[w] & ~d->mask[w] || (free_cores[w] & d->mask[w]) != mask[w])
			return false;
	return true;
}

static bool stands_free(const struct judged_share *h, const struct whole *d)
{
	const struct cluster *c = h->j->cluster;

	for (unsigned i = 0; i < c->n; i++)
		if (c->nodes[i].kind == d->kind && (!h->j->taken[i] || i == h->seat->node) &&
		    h->room->count[i] >= d->cores &&
		    core_set_is_within(d->mask, cluster_room_node(h->room, i), d->kind->words))
			return true;
	return false;
}

/* Whether the domain is no worse than the share's cores. */
static bool fits_as_well(const struct judged_share *h, const struct whole *d)
{
	const struct cluster_kind *own = h->j->cluster->nodes[h->seat->node].kind;

	return d->cores == cluster_job_cores(h->job, h->seat->tasks, d->kind) &&
	       touch_within(touch_of(h->j, d->kind, d->mask), h->touch) &&
	       level_count(h->j, d->kind, LEVEL_L2, d->mask) <= level_count(h->j, own, LEVEL_L2, h->seat->mask);
}

static bool seat_is_exact(const struct judged_share *h)
{
	const struct cluster_kind *own = h->j->cluster->nodes[h->seat->node].kind;

	for (size_t i = 0; i < h->j->nwholes; i++)
		if (h->j->wholes[i].kind == own && seat_fills(h, &h->j->wholes[i]))
			return true;
	return false;
}

static void judge_exact(const struct judged_share *h, struct judgement *out)
{
	for (size_t i = 0; i < h->j->nwholes; i++) {
		const struct whole *d = &h->j->wholes[i];

		if (!fits_as_well(h, d) || !stands_free(h, d))
			continue;
		out->exact_had = seat_is_exact(h) && (out->exact_had || !out->exact_possible);
		out->exact_possible = true;
		return;
	}
}

/* --- memory --- */

#define SLACK 1.0			/* MB: shares of memory are counted in sixteenths of one */

/* Fills j->left: what jobs have too much of one NUMA node is in the others, as much as these have free. */
static void memory_left(const struct judged_share *h, unsigned node)
{
	const struct cluster_node *n = &h->j->cluster->nodes[node];
	const struct shape *s = n->kind->shape;
	double all = 0, excess = 0;

	for (unsigned i = 0; i < s->numas.count; i++) {
		const struct shape_domain *d = &s->domains[s->numas.domains[i]];
		double used = 0, has = (double) n->kind->memory * d->memory / s->numas.all;

		for (unsigned c = d->first; c < d->first + d->cores; c++)
			used += (double) h->room->used[n->core + c] / NUMA_MEMORY_UNIT;
		h->j->left[i] = fmax(has - used, 0);
		all += h->j->left[i];
		excess += fmax(used - has, 0);
	}
	for (unsigned i = 0; i < s->numas.count; i++)
		h->j->left[i] *= all > 0 ? fmax(1 - excess / all, 0) : 0;
}

static struct cluster_range numa_range(const struct shape *s, unsigned nth)
{
	const struct shape_domain *d = &s->domains[s->numas.domains[nth]];

	return (struct cluster_range){ d->first, d->cores };
}

static bool memory_is_far(const struct judged_share *h)
{
	const struct shape *s = h->j->cluster->nodes[h->seat->node].kind->shape;
	double each = (double) h->seat->memory / h->seat->cores;

	memory_left(h, h->seat->node);
	for (unsigned i = 0; i < s->numas.count; i++)
		if (each * cluster_range_count(h->seat->mask, numa_range(s, i)) > h->j->left[i] + SLACK)
			return true;
	return false;
}

/* Whether some free cores of the node have the share's memory in their own NUMA nodes. */
static bool memory_can_be_near(const struct judged_share *h, unsigned node)
{
	const struct cluster_kind *kind = h->j->cluster->nodes[node].kind;
	const struct shape *s = kind->shape;
	unsigned cores = cluster_job_cores(h->job, h->seat->tasks, kind), near = 0;

	if (h->room->count[node] < cores || !cluster_room_has_memory(h->room, node, h->seat->memory))
		return false;
	memory_left(h, node);
	for (unsigned i = 0; i < s->numas.count; i++)
		near += fmin(cluster_range_count(cluster_room_node(h->room, node), numa_range(s, i)),
			     fmax(h->j->left[i] - SLACK, 0) * cores / h->seat->memory);
	return !s->numas.count || near >= cores;
}

static void judge_memory(const struct judged_share *h, struct judgement *out)
{
	if (!h->seat->memory || !memory_is_far(h))
		return;
	out->memory_far = true;
	for (unsigned i = 0; i < h->j->cluster->n && !out->memory_needless; i++)
		out->memory_needless = (!h->j->taken[i] || i == h->seat->node) && memory_can_be_near(h, i);
}

/* --- a share, a job --- */

static unsigned packages_broken(const struct judged_share *h)
{
	const struct cluster_ranges *packages = &h->j->cluster->nodes[h->seat->node].kind->at[LEVEL_PACKAGE];
	const uint64_t *free_cores = cluster_room_node(h->room, h->seat->node);
	unsigned n = 0;

	for (size_t i = 0; i < packages->n; i++) {
		const struct cluster_range *r = &packages->list[i];
		unsigned taken = cluster_range_count(h->seat->mask, *r);

		n += taken && taken < r->cores && cluster_range_count(free_cores, *r) == r->cores;
	}
	return n;
}

static int judge_seat(const struct judged_share *h, struct judgement *out)
{
	uint64_t least;
	unsigned sum;

	if (empty_least(h, &least, &sum))
		return -1;
	out->touched += touch_sum(h->touch);
	out->ideal += sum;
	out->broken += packages_broken(h);
	judge_memory(h, out);
	if (h->touch != least && compare_all(h, out))
		return -1;
	judge_exact(h, out);
	return 0;
}

int judge_seats(struct judge *j, const struct cluster_room *r, const struct past_job *job,
		const struct cluster_shares *seats, struct judgement *out)
{
	struct judgement v = {0};
	int rc = 0;

	fit_cache_begin(&j->cache, 0);
	fit_cache_allow(&j->cache, UINT_MAX);
	for (size_t i = 0; i < seats->n; i++)
		j->taken[seats->list[i].node] = true;
	for (size_t i = 0; !rc && i < seats->n; i++) {
		const struct cluster_share *seat = &seats->list[i];
		struct judged_share h = { j, r, job, seat, touch_of(j, j->cluster->nodes[seat->node].kind,
								  seat->mask) };

		rc = judge_seat(&h, &v);
	}
	for (size_t i = 0; i < seats->n; i++)
		j->taken[seats->list[i].node] = false;
	if (!rc)
		*out = v;
	return rc;
}
