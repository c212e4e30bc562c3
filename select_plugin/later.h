/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_LATER_H
#define TOPIARY_SELECT_LATER_H

#include "plan.h"

/*
 * When a place that is required, and not to be had now, will be: the running jobs are let go one after another, in the order
 * in which they must end, and try() is asked for each plan that comes up, until it says yes. What was changed in s is changed
 * back.
 */
bool later_find(struct seats *s, bool (*try)(void *user, struct seats *s, const struct plan *p), void *user);

/* Whether the job could ever run: on its nodes, if no other job were there. */
bool later_possible(struct seats *s);

#endif
