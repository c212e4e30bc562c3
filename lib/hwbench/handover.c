/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwbench/hwbench_parts.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define ROUNDS 1000u	/* between two looks at the clock */
#define SPINS 1000000u	/* without an answer: the other core has something else to do */

struct handover {
	hwloc_topology_t topology;
	hwloc_obj_t from, to;
	double seconds, best;		/* best: of a round trip */
	_Alignas(128) atomic_uint line;
	_Alignas(128) atomic_bool is_over;
};

static hwloc_obj_t domain_of(hwloc_topology_t t, hwloc_obj_t core, enum level level)
{
	static const hwloc_obj_type_t types[LEVEL_COUNT] = {
		[LEVEL_PACKAGE] = HWLOC_OBJ_PACKAGE, [LEVEL_DIE] = HWLOC_OBJ_DIE, [LEVEL_L3] = HWLOC_OBJ_L3CACHE,
		[LEVEL_L2] = HWLOC_OBJ_L2CACHE, [LEVEL_CORE] = HWLOC_OBJ_CORE,
	};

	if (level == LEVEL_CORE)
		return core;
	return level == LEVEL_NUMA ? team_numa(t, core) : hwloc_get_ancestor_obj_by_type(t, types[level], core);
}

static enum level first_difference(hwloc_topology_t t, hwloc_obj_t a, hwloc_obj_t b)
{
	for (enum level level = LEVEL_PACKAGE; level < LEVEL_CORE; level++)
		if (domain_of(t, a, level) != domain_of(t, b, level))
			return level;
	return LEVEL_CORE;
}

/* Waits until the line has a value; false when it is over. */
static bool wait_for(struct handover *h, unsigned value)
{
	for (unsigned spins = 0; atomic_load_explicit(&h->line, memory_order_acquire) != value; spins++) {
		if (spins < SPINS)
			continue;
		spins = 0;
		if (atomic_load(&h->is_over))
			return false;
	}
	return true;
}

static void *answer(void *user)
{
	struct handover *h = user;

	team_bind(h->topology, h->to);
	for (unsigned i = 1; wait_for(h, i); i += 2)
		atomic_store_explicit(&h->line, i + 1, memory_order_release);
	return NULL;
}

static void *ask(void *user)
{
	struct handover *h = user;
	double end;
	unsigned value = 0;

	team_bind(h->topology, h->from);
	for (end = clock_now() + h->seconds; clock_now() < end;) {
		double from = clock_now(), took;

		for (unsigned i = 0; i < ROUNDS; i++, value += 2) {
			atomic_store_explicit(&h->line, value + 1, memory_order_release);
			wait_for(h, value + 2);
		}
		took = (clock_now() - from) / ROUNDS;
		h->best = !h->best || took < h->best ? took : h->best;
	}
	atomic_store(&h->is_over, true);
	return NULL;
}

static int pair_measure(struct handover *h, struct err *e)
{
	pthread_t threads[2];
	int rc = pthread_create(&threads[0], NULL, answer, h);

	if (rc)
		return err_set(e, "cannot start a thread: %s", strerror(rc));
	rc = pthread_create(&threads[1], NULL, ask, h);
	if (rc)
		atomic_store(&h->is_over, true);
	else
		pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
	return rc ? err_set(e, "cannot start a thread: %s", strerror(rc)) : 0;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Pairs that begin at cores all over the node: the first other core that differs first at this level. */
static unsigned pairs_find(hwloc_topology_t t, enum level level, hwloc_obj_t pairs[static HANDOVER_PAIRS][2])
{
	unsigned cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE), n = 0, last = UINT_MAX;

	for (unsigned i = 0; i < HANDOVER_PAIRS; i++) {
		unsigned first = (unsigned long) i * cores / HANDOVER_PAIRS;
		hwloc_obj_t a = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, first), b = NULL;

		if (first == last)
			continue;
		last = first;
		while ((b = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, b)))
			if (b != a && first_difference(t, a, b) == level)
				break;
		if (!b)
			continue;
		pairs[n][0] = a;
		pairs[n++][1] = b;
	}
	return n;
}

int handover_pair(hwloc_topology_t t, hwloc_obj_t from, hwloc_obj_t to, double seconds, double *out, struct err *e)
{
	struct handover h = { .topology = t, .from = from, .to = to, .seconds = seconds };

	if (pair_measure(&h, e))
		return -1;
	*out = h.best / 2;
	return 0;
}

int handover_measure(hwloc_topology_t t, enum level level, double seconds, struct hwbench_handover *out,
		     struct err *e)
{
	hwloc_obj_t pairs[HANDOVER_PAIRS][2];
	double times[HANDOVER_PAIRS];

	out->pairs = pairs_find(t, level, pairs);
	for (unsigned i = 0; i < out->pairs; i++)
		if (handover_pair(t, pairs[i][0], pairs[i][1], seconds / out->pairs, &times[i], e))
			return -1;
	qsort(times, out->pairs, sizeof(*times), by_time);
	out->seconds = out->pairs ? times[out->pairs / 2] : 0;
	return 0;
}
