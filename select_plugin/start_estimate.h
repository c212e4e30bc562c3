/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_START_ESTIMATE_H
#define TOPIARY_SELECT_START_ESTIMATE_H

#include "plan.h"

/*
 * Estimates when a required placement that is not available now will be. Running jobs are released one after another in
 * the order of their ends, and try() is called whenever there may be a place, until it returns true or the budget, a
 * new one, is used up; then once more, with `last` set, without all jobs. All of s except its budget is restored.
 */
typedef bool start_estimate_try_t(void *user, struct candidate_set *s, bool last);
bool start_estimate_find(struct candidate_set *s, start_estimate_try_t *try, void *user);

/* False when no distribution of the tasks lets the job ever run: on its nodes, if no other job were there. */
bool start_estimate_possible(struct candidate_set *s);

#endif
