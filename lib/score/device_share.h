/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_DEVICE_SHARE_H
#define TOPIARY_SCORE_DEVICE_SHARE_H

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

#endif
