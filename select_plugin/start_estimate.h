/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_START_ESTIMATE_H
#define TOPIARY_SELECT_START_ESTIMATE_H

#include "plan.h"

/*
 * When a place that is required, and not to be had now, will be: the running jobs are let go one after another, in the
 * order in which they must end, and try() is asked whenever there may be a place, until it says yes or the budget, a
 * new one, is exhausted; then once more, `last`, without all jobs. What was changed in s is changed back, but for its
 * budget.
 */
typedef bool start_estimate_try_t(void *user, struct candidate_set *s, bool last);
bool start_estimate_find(struct candidate_set *s, start_estimate_try_t *try, void *user);

/* False when no way of sharing tasks lets the job ever run: on its nodes, if no other job were there. */
bool start_estimate_possible(struct candidate_set *s);

#endif
