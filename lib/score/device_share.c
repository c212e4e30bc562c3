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

/* Whole tasks, or cores, that the free cores of a set have room for. */
static unsigned room_of(const struct device_share *s, const uint64_t *free_cores, struct score_task task)
{
	unsigned n = 0;

	for (unsigned c = s->first; c < s->first + s->cores; c++)
		n += core_set_has(free_cores, c);
	return score_task_room(task, n);
}

/*
 * The set that the next task or core goes to: one without any, then by the highest quotient (D'Hondt's method), a set
 * with one device and no task before one with four devices and one. n: none has room.
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
	struct score_task task = score_task_of(need);
	unsigned count = score_task_room(task, need->cores), all = 0, given = 0, room[DEVICE_SHARES_MAX];

	if (n < 2 || n > DEVICE_SHARES_MAX || need->nlimits || (need->path && need->path->steps))
		return 0;
	/* Fewer tasks than sets have cores near several. */
	if (count < n) {
		task = (struct score_task){ 1, 1 };
		count = need->cores;
	}
	if (score_task_span(task, count) != need->cores)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		if (!is_domain(shape, &shares[i]))
			return 0;
		all += room[i] = room_of(&shares[i], free_cores, task);
		out[i] = (struct score_limit){ shares[i].first, shares[i].cores, 0 };
	}
	if (all < count)
		return 0;
	for (unsigned left = count; left; left--)
		out[next_set(shares, n, room, out)].most++;
	/* Tasks that share a core with the next one have more cores in one set and fewer in the next. */
	for (unsigned i = 0, tasks = 0; i < n; i++) {
		tasks += out[i].most;
		out[i].most = score_task_span(task, tasks) - given;
		given += out[i].most;
	}
	return n;
}
