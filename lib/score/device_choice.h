/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "score/score.h"

/*
 * How a job's cores on a node are divided where its devices are near several sets of cores: with three GPUs of which
 * two are at the second package, two thirds of the tasks are there. Called by the select plugin. Independent of Slurm.
 */
#define DEVICE_SHARES_MAX 16u

/* So many of the devices are near the cores first .. first+cores-1. */
struct device_share {
	unsigned first, cores, devices;
};

/*
 * The limits by which the cores near each of n devices' sets, ascending and disjoint, have tasks in proportion to their
 * devices, at least one, as far as there are free cores for them; with fewer tasks than sets, cores in proportion: a
 * task with several devices has cores near each. Written to out, which has room for n. Otherwise tasks are not divided,
 * but where two share a core, one of them may have one CPU in the set before. Returns their number: 0 if there is
 * nothing to divide, as with one set or too few free cores; if a set is no domain of the shape; or if the need has a
 * path or limits of its own.
 */
unsigned device_share_limits(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
			     const struct device_share *shares, unsigned n, struct score_limit *out);

/*
 * Which of a node's free devices a job gets: before its cores are chosen, the sets of devices worth a try; when it has
 * its cores, the devices near these. Called by the select plugin. Independent of Slurm.
 */

/* Free devices, grouped by the cores that they are near: n sets of core_set_words(shape->cores) words, disjoint. */
struct device_groups {
	unsigned n, devices[DEVICE_SHARES_MAX];
	const uint64_t *cores;
};

/* Some of the groups, one bit each, that have enough devices together. */
struct device_set {
	uint32_t groups;
	unsigned unserved;	/* groups without room for a task; of fewer tasks than groups, without a free core */
};

/*
 * Writes sets of groups with `want` devices together to out, at most DEVICE_SHARES_MAX, the best first: those near
 * enough free cores; of these, with the fewest groups unserved; of these, in the smallest domain. If
 * none is near enough free cores, one set. Returns their number; 0 if there are fewer devices.
 */
unsigned device_choice_sets(const struct shape *shape, const struct device_groups *g, unsigned want,
			    const uint64_t *free_cores, const struct score_need *need, struct device_set *out);

/*
 * The cores near a set of groups that are also in free_cores[], written to cores[]; and the ranges of which `want`
 * devices are near, ascending, written to out. Returns the number of these: 0 if a group is no range of cores.
 */
unsigned device_choice_shares(const struct device_groups *g, const struct device_set *set, unsigned want,
			      const uint64_t *free_cores, unsigned words, uint64_t *cores,
			      struct device_share out[static DEVICE_SHARES_MAX]);

/* The devices of a node, and the cores near each: n sets of so many words, empty if unknown. */
struct device_list {
	unsigned n, words;
	const uint64_t *near;
	const bool *usable;	/* by device: whether the job may get it */
	unsigned socket_cores;	/* of a socket, each of which gets its share by mine[]; 0: no such limit */
};

#define DEVICE_LIST_MAX 64u

/* Of some devices and cores: the cores that are near none of the devices, the devices near none of the cores. */
struct device_misfit {
	unsigned cores, devices;
};
struct device_misfit device_choice_misfit(const struct device_list *l, const uint64_t *mine, const bool *chosen);

/*
 * Replaces chosen devices by as many usable ones that are nearer to the cores mine[]: with fewer cores far from all of
 * them or, with as many, fewer devices far from all cores; a socket gets no more than its share. Returns whether
 * chosen, of at most DEVICE_LIST_MAX devices, has changed.
 */
bool device_choice_improve(const struct device_list *l, const uint64_t *mine, bool *chosen);
