/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwbench/hwbench_parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct team {
	hwloc_topology_t topology;
	team_work_t *work;
	double seconds;
	unsigned n;
	atomic_uint begun, finished;
	atomic_bool is_failed;
};

struct team_thread {
	struct team *team;
	struct team_member *member;
	pthread_t thread;
};

int team_bind(hwloc_topology_t t, hwloc_obj_t core)
{
	hwloc_bitmap_t one = hwloc_bitmap_dup(core->cpuset);
	int rc;

	if (!one)
		return -1;
	hwloc_bitmap_singlify(one);
	rc = hwloc_set_cpubind(t, one, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(one);
	return rc;
}

hwloc_obj_t team_numa(hwloc_topology_t t, hwloc_obj_t core)
{
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));)
		if (hwloc_bitmap_isincluded(core->cpuset, o->cpuset))
			return o;
	return NULL;
}

static void *thread_run(void *user)
{
	struct team_thread *thread = user;
	struct team *team = thread->team;
	struct team_member *m = thread->member;
	double from, until;
	uint64_t done = 0;

	if (team_bind(team->topology, m->core))
		atomic_store(&team->is_failed, true);
	team->work(m);
	atomic_fetch_add(&team->begun, 1);
	while (atomic_load(&team->begun) < team->n)
		team->work(m);
	from = clock_now();
	do
		done += team->work(m);
	while ((until = clock_now()) < from + team->seconds);
	m->rate = done / (until - from);
	atomic_fetch_add(&team->finished, 1);
	while (atomic_load(&team->finished) < team->n)
		team->work(m);
	return NULL;
}

int team_run(hwloc_topology_t t, struct team_member *members, unsigned n, team_work_t *work, double seconds,
	     struct err *e)
{
	struct team team = { .topology = t, .work = work, .seconds = seconds, .n = n };
	struct team_thread *threads = calloc(n, sizeof(*threads));
	unsigned started = 0;
	int rc = 0;

	if (!threads)
		return err_set(e, "out of memory");
	for (; started < n && rc == 0; started += rc == 0) {
		threads[started] = (struct team_thread){ &team, &members[started], 0 };
		rc = pthread_create(&threads[started].thread, NULL, thread_run, &threads[started]);
	}
	/* Those that run wait for the others. */
	atomic_fetch_add(&team.begun, n - started);
	atomic_fetch_add(&team.finished, n - started);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i].thread, NULL);
	free(threads);
	if (rc)
		return err_set(e, "cannot start %u threads: %s", n, strerror(rc));
	return team.is_failed ? err_set(e, "cannot bind a thread to a core") : 0;
}
