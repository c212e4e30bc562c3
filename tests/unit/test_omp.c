/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/vars.h"
#include "table.h"
#include "topology.h"

/* A task's environment: what the user has, and what was set, in order. */
struct env {
	const char *user;		/* one name, or NULL */
	char set[512];
};

static bool env_has(void *arg, const char *name)
{
	struct env *env = arg;

	return env->user && !strcmp(env->user, name);
}

static void env_set(void *arg, const char *name, const char *value)
{
	struct env *env = arg;
	size_t n = strlen(env->set);

	if (!env_has(env, name))
		snprintf(env->set + n, sizeof(env->set) - n, "%s%s=%s", n ? " " : "", name, value);
}

#define SMT "core:4 pu:2"

TEST(exports_what_fits)
{
	static const struct {
		const char *machine, *pus;
		unsigned cpus, sharers;
		enum bind_omp form;
		const char *user, *set;
	} rows[] = {
		/* A place a core, and a PU a place when the task has more CPUs than cores. */
		{ SMT, "0-3", 0, 1, OMP_AUTO, NULL, "OMP_PLACES={0,1},{2,3} OMP_PROC_BIND=spread OMP_NUM_THREADS=2" },
		{ SMT, "0-3", 2, 1, OMP_AUTO, NULL, "OMP_PLACES={0,1},{2,3} OMP_PROC_BIND=spread OMP_NUM_THREADS=2" },
		{ SMT, "0-3", 4, 1, OMP_AUTO, NULL, "OMP_PLACES={0},{1},{2},{3} OMP_PROC_BIND=spread"
		  " OMP_NUM_THREADS=4" },
		{ SMT, "0-3", 3, 1, OMP_AUTO, NULL, "OMP_PLACES={0},{1},{2},{3} OMP_PROC_BIND=spread"
		  " OMP_NUM_THREADS=3" },
		{ SMT, "0,2,5", 0, 1, OMP_AUTO, NULL, "OMP_PLACES={0},{2},{5} OMP_PROC_BIND=spread OMP_NUM_THREADS=3" },
		{ SMT, "0-7", 1, 1, OMP_AUTO, NULL, "OMP_PLACES={0,1},{2,3},{4,5},{6,7} OMP_PROC_BIND=spread"
		  " OMP_NUM_THREADS=1" },
		{ "pu:3", "1-2", 9, 1, OMP_AUTO, NULL, "OMP_PLACES={1},{2} OMP_PROC_BIND=spread OMP_NUM_THREADS=2" },
		/* The older forms stand for both. */
		{ SMT, "0-3", 0, 1, OMP_GOMP, NULL, "GOMP_CPU_AFFINITY=0 2 OMP_NUM_THREADS=2" },
		{ SMT, "0-3", 4, 1, OMP_GOMP, NULL, "GOMP_CPU_AFFINITY=0 1 2 3 OMP_NUM_THREADS=4" },
		{ SMT, "0-3", 0, 1, OMP_KMP, NULL, "KMP_AFFINITY=granularity=fine,proclist=[{0,1},{2,3}],explicit"
		  " OMP_NUM_THREADS=2" },
		/* PUs of several tasks. */
		{ SMT, "0-7", 0, 2, OMP_AUTO, NULL, "OMP_NUM_THREADS=2" },
		{ SMT, "0-7", 0, 9, OMP_AUTO, NULL, "OMP_NUM_THREADS=1" },
		{ SMT, "0-7", 3, 2, OMP_AUTO, NULL, "OMP_NUM_THREADS=3" },
		{ SMT, "0-7", 99, 2, OMP_AUTO, NULL, "OMP_NUM_THREADS=8" },
		/* What the user has stays, and places that the user chose stay alone. */
		{ SMT, "0-3", 0, 1, OMP_AUTO, "OMP_NUM_THREADS", "OMP_PLACES={0,1},{2,3} OMP_PROC_BIND=spread" },
		{ SMT, "0-3", 0, 1, OMP_AUTO, "OMP_PLACES", "" },
		{ SMT, "0-3", 0, 1, OMP_AUTO, "OMP_PROC_BIND", "" },
		{ SMT, "0-3", 0, 1, OMP_AUTO, "KMP_AFFINITY", "" },
		{ SMT, "0-3", 0, 1, OMP_GOMP, "GOMP_CPU_AFFINITY", "" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct env env = { rows[i].user, "" };
		struct bind_vars v = { env_has, env_set, &env };
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = bitmap_of(rows[i].pus);
		struct omp_task task = { pus, rows[i].cpus, rows[i].sharers };
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(rows[i].machine);

		assert_int_equal(omp_export(t, rows[i].form, &task, &v, &err), 0);
		if (strcmp(env.set, rows[i].set))
			fail_msg("%s of %s, %u CPUs: '%s', not '%s'", rows[i].pus, rows[i].machine, rows[i].cpus,
				 env.set, rows[i].set);
	}
}

TESTS_MAIN(NULL, NULL)
