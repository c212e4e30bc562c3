/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REPLAY_FRONTS_H
#define TOPIARY_REPLAY_FRONTS_H

#include "replay/cluster.h"

/*
 * The number of domains that contain some cores, four counts in one word: sums of words are sums of counts, as long as
 * none exceeds TOUCH_MAX.
 */
enum front_lane { LANE_PACKAGE, LANE_DIE, LANE_NUMA, LANE_L3, LANES };
#define TOUCH_MAX 0x7fffu

static inline unsigned front_touch_count(uint64_t touch, enum front_lane lane)
{
	return touch >> 16 * lane & 0xffff;
}

static inline uint64_t front_touch_one(enum front_lane lane)
{
	return 1ull << 16 * lane;
}

/* Whether no lane of a exceeds that of b. */
static inline bool front_touch_within(uint64_t a, uint64_t b)
{
	const uint64_t high = 0x8000800080008000ull;

	return (((b | high) - a) & high) == high;
}

/* The minimum of each lane. */
uint64_t front_touch_least(uint64_t a, uint64_t b);

/* Packages, NUMA nodes and L3 caches together. */
static inline unsigned front_touch_sum(uint64_t t)
{
	return front_touch_count(t, LANE_PACKAGE) + front_touch_count(t, LANE_NUMA) + front_touch_count(t, LANE_L3);
}

/*
 * All combinations of domains that a number of cores of a node can touch, except those that another one dominates (no
 * lane more, one less).
 */
struct front {
	const uint64_t *list;
	size_t n;
};

struct fronts;

/* NULL when memory is short. */
struct fronts *fronts_new(const struct cluster *c);
void fronts_free(struct fronts *f);

/*
 * What so many of these free cores can touch without cutting a task of task_cores at a NUMA node or an L3 cache; empty
 * if that is not possible. (In a package or die of which only some cores have a NUMA node, the count may be one too
 * high, never too low.) Borrowed until fronts_trim. 0, or -1 when memory is short.
 */
int fronts_get(struct fronts *f, const struct cluster_kind *kind, const uint64_t *free_cores, unsigned task_cores,
	       unsigned cores, struct front *out);
void fronts_trim(struct fronts *f);

/* What the cores of a set touch; and the number of L2 caches, where a core without one counts as one. */
uint64_t fronts_touch(struct fronts *f, const struct cluster_kind *kind, const uint64_t *cores);
unsigned fronts_touch_l2(struct fronts *f, const struct cluster_kind *kind, const uint64_t *cores);

#endif
