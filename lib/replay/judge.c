/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/judge.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/core_set.h"
#include "replay/fronts.h"
#include "score/numa_memory.h"

static const struct {
	enum level level;
	enum front_lane lane;
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
	struct fronts *fronts;
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

/* --- constants of the cluster --- */

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
	*j = (struct judge){ .cluster = c, .fronts = fronts_new(c), .taken = calloc(c->n, sizeof(*j->taken)),
			     .left = calloc(c->numas_max + 1, sizeof(*j->left)) };
	if (j->fronts && j->taken && j->left && !cluster_room_init(&j->empty, c, false) && !samples_find(j) &&
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
	fronts_free(j->fronts);
	if (j->empty.cluster)
		cluster_room_free(&j->empty);
	free(j->sample);
	free(j->taken);
	free(j->left);
	free(j);
}

/* --- other placements --- */

/* What the share's tasks could touch on a node of a room. */
static int front_on(const struct judged_share *h, const struct cluster_room *r, unsigned node, bool uncut,
		    struct front *out)
{
	const struct cluster_kind *kind = r->cluster->nodes[node].kind;
	unsigned cores = cluster_job_cores(h->job, h->seat->tasks, kind);

	*out = (struct front){0};
	if (r->count[node] < cores)
		return 0;
	return fronts_get(h->j->fronts, kind, cluster_room_node(r, node),
			  uncut ? cluster_job_task_cores(h->job, kind) : 1, cores, out);
}

/* The minimum of each lane, and the least sum of lanes, over the empty nodes of all kinds. */
static int empty_least(const struct judged_share *h, uint64_t *lanes, unsigned *sum)
{
	struct front f;

	*lanes = UINT64_MAX / 2;
	*sum = front_touch_sum(h->touch);
	for (size_t i = 0; i < h->j->cluster->nkinds; i++) {
		if (h->j->sample[i] < 0)
			continue;
		if (front_on(h, &h->j->empty, h->j->sample[i], false, &f))
			return -1;
		for (size_t n = 0; n < f.n; n++) {
			*lanes = front_touch_least(*lanes, f.list[n]);
			if (front_touch_sum(f.list[n]) < *sum)
				*sum = front_touch_sum(f.list[n]);
		}
	}
	return 0;
}

static void note_splits(const struct judged_share *h, uint64_t least, bool split[JUDGED_LEVELS])
{
	for (size_t i = 0; i < JUDGED_LEVELS; i++)
		split[i] |= front_touch_count(least, judged[i].lane) < front_touch_count(h->touch, judged[i].lane);
}

/* Compares the share with placements on another node that the job does not have, or on its own. */
static int compare_node(const struct judged_share *h, unsigned node, struct judgement *out)
{
	uint64_t least = h->touch;
	struct front f;

	if (front_on(h, h->room, node, true, &f))
		return -1;
	for (size_t i = 0; i < f.n; i++) {
		out->dominated |= f.list[i] != h->touch && front_touch_within(f.list[i], h->touch);
		least = front_touch_least(least, f.list[i]);
	}
	if (node == h->seat->node)
		note_splits(h, least, out->split_own);
	note_splits(h, least, out->split_any);
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

/* Whether the domain is no worse than the share's cores. 1, 0, or -1. */
static int fits_as_well(const struct judged_share *h, const struct whole *d)
{
	const struct cluster_kind *own = h->j->cluster->nodes[h->seat->node].kind;
	struct fronts *f = h->j->fronts;
	struct front front;

	if (d->cores != cluster_job_cores(h->job, h->seat->tasks, d->kind))
		return 0;
	if (fronts_get(f, d->kind, d->mask, cluster_job_task_cores(h->job, d->kind), d->cores, &front))
		return -1;
	return front.n && front_touch_within(*front.list, h->touch) &&
	       fronts_touch_l2(f, d->kind, d->mask) <= fronts_touch_l2(f, own, h->seat->mask);
}

static bool seat_is_exact(const struct judged_share *h)
{
	const struct cluster_kind *own = h->j->cluster->nodes[h->seat->node].kind;

	for (size_t i = 0; i < h->j->nwholes; i++)
		if (h->j->wholes[i].kind == own && seat_fills(h, &h->j->wholes[i]))
			return true;
	return false;
}

static int judge_exact(const struct judged_share *h, struct judgement *out)
{
	for (size_t i = 0; i < h->j->nwholes; i++) {
		const struct whole *d = &h->j->wholes[i];
		int rc = fits_as_well(h, d);

		if (rc < 0)
			return -1;
		if (!rc || !stands_free(h, d))
			continue;
		out->exact_had = seat_is_exact(h) && (out->exact_had || !out->exact_possible);
		out->exact_possible = true;
		return 0;
	}
	return 0;
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
	out->touched += front_touch_sum(h->touch);
	out->ideal += sum;
	out->broken += packages_broken(h);
	judge_memory(h, out);
	if (h->touch != least && compare_all(h, out))
		return -1;
	return judge_exact(h, out);
}

int judge_seats(struct judge *j, const struct cluster_room *r, const struct past_job *job,
		const struct cluster_shares *seats, struct judgement *out)
{
	struct judgement v = {0};
	int rc = 0;

	fronts_trim(j->fronts);
	for (size_t i = 0; i < seats->n; i++)
		j->taken[seats->list[i].node] = true;
	for (size_t i = 0; !rc && i < seats->n; i++) {
		const struct cluster_share *seat = &seats->list[i];
		struct judged_share h = { j, r, job, seat, fronts_touch(j->fronts, j->cluster->nodes[seat->node].kind,
									seat->mask) };

		rc = judge_seat(&h, &v);
	}
	for (size_t i = 0; i < seats->n; i++)
		j->taken[seats->list[i].node] = false;
	if (!rc)
		*out = v;
	return rc;
}
