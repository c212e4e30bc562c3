/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/device_share.h"

static bool is_domain(const struct shape *shape, const struct device_share *s)
{
	for (size_t i = 0; i < shape->ndomains; i++)
		if (shape->domains[i].first == s->first && shape->domains[i].cores == s->cores)
			return s->cores > 1;
	return false;
}

/* Whole tasks that the free cores of a set have room for. */
static unsigned room_of(const struct device_share *s, const uint64_t *free_cores, unsigned task_cores)
{
	unsigned n = 0;

	for (unsigned c = s->first; c < s->first + s->cores; c++)
		n += core_set_has(free_cores, c);
	return n / task_cores;
}

/*
 * The set that the next task goes to: one without a task, then by the highest quotient (D'Hondt's method), a set with
 * one device and no task before one with four devices and one. n: none has room.
 */
static unsigned next_set(const struct device_share *shares, unsigned n, const unsigned *room,
			 const struct score_limit *has)
{
	unsigned best = n;

	for (unsigned i = 0; i < n; i++) {
		if (has[i].most >= room[i])
			continue;
		if (best == n || (!has[i].most && has[best].most) ||
		    (!has[i].most == !has[best].most && (uint64_t) shares[i].devices * (has[best].most + 1) >
							(uint64_t) shares[best].devices * (has[i].most + 1)))
			best = i;
	}
	return best;
}

unsigned device_share_limits(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
			     const struct device_share *shares, unsigned n, struct score_limit *out)
{
	unsigned tasks = need->cores / need->task_cores, all = 0, room[DEVICE_SHARES_MAX];

	if (n < 2 || n > DEVICE_SHARES_MAX || tasks < n || need->cores % need->task_cores || need->nlimits ||
	    (need->path && need->path->steps))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		if (!is_domain(shape, &shares[i]))
			return 0;
		all += room[i] = room_of(&shares[i], free_cores, need->task_cores);
		out[i] = (struct score_limit){ shares[i].first, shares[i].cores, 0 };
	}
	if (all <= tasks)
		return 0;
	while (tasks--)
		out[next_set(shares, n, room, out)].most++;
	for (unsigned i = 0; i < n; i++)
		out[i].most *= need->task_cores;
	return n;
}
