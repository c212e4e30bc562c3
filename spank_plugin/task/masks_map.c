/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <slurm/slurm.h>
#include <stdlib.h>

#include "hwview/machine.h"
#include "hwview/restrict.h"
#include "map_places.h"
#include "step/step.h"
#include "task.h"

enum { MAX_CORES = 65536 };

/* The map numbers the job's cores on the node, the topology has those of the step. */
struct core_index {
	struct task *task;
	int *at;		/* for each core of the job, its index among the step's; -1: not in the step */
	unsigned n;
	unsigned own;		/* cores of the step */
};

static int index_cores(struct core_index *c, const char *job, const char *own, unsigned char *in_job,
	unsigned char *in_step, struct err *e)
{
	int at = 0;

	if (cores_parse(job, in_job, MAX_CORES, e) || cores_parse(own, in_step, MAX_CORES, e))
		return -1;
	for (unsigned i = 0; i < MAX_CORES; at += in_step[i++])
		if (in_job[i])
			c->at[c->n++] = in_step[i] ? at : -1;
	c->own = at;
	return 0;
}

static int find_cores(struct core_index *c, struct err *e)
{
	hwloc_topology_t t = c->task->topology;
	unsigned char *in = malloc(2 * MAX_CORES);
	char *job = NULL, *own = NULL;
	spank_t sp = c->task->sp;
	int rc;

	c->at = malloc(MAX_CORES * sizeof(*c->at));
	if (!in || !c->at)
		rc = err_set(e, "out of memory");
	else if (spank_get_item(sp, S_JOB_ALLOC_CORES, &job) || spank_get_item(sp, S_STEP_ALLOC_CORES, &own) || !job ||
	    !own)
		rc = err_set(e, "Slurm does not provide the cores of the job or the step");
	else
		rc = index_cores(c, job, own, in, in + MAX_CORES, e);
	if (!rc && c->own != (unsigned) hwloc_get_nbobjs_by_type(t, machine_core_type(t)))
		rc = err_set(e, "a core of the step is offline");
	free(in);
	return rc;
}

static int add_cores(void *data, unsigned task, unsigned first, unsigned last, struct err *e)
{
	const struct core_index *c = data;
	struct task *t = c->task;
	hwloc_obj_type_t type = machine_core_type(t->topology);

	for (unsigned core_number = first; core_number <= last; core_number++) {
		hwloc_obj_t core = core_number < c->n && c->at[core_number] >= 0 ?
			hwloc_get_obj_by_type(t->topology, type, c->at[core_number]) : NULL;

		if (!core || task >= t->nlocal)
			return err_set(e, "the step does not have all cores or tasks of the map on this node");
		hwloc_bitmap_or(t->masks[task], t->masks[task], core->cpuset);
	}
	return 0;
}

/* Tasks that share a core, where each has all its CPUs (lib/map/places/places_add.c), divide its PUs among them. */
static void divide_cores(struct task *t)
{
	hwloc_obj_type_t type = machine_core_type(t->topology);

	for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(t->topology, type, core)); ) {
		unsigned pus = hwloc_bitmap_weight(core->cpuset), sharers = 0, nth = 0, at = 0;
		int pu = -1;

		for (unsigned i = 0; i < t->nlocal; i++)
			sharers += hwloc_bitmap_isequal(t->masks[i], core->cpuset);
		for (unsigned i = 0; sharers > 1 && sharers <= pus && i < t->nlocal; i++) {
			if (!hwloc_bitmap_isequal(t->masks[i], core->cpuset))
				continue;
			hwloc_bitmap_zero(t->masks[i]);
			for (nth++; at < pus * nth / sharers; at++) {
				pu = hwloc_bitmap_next(core->cpuset, pu);
				hwloc_bitmap_set(t->masks[i], pu);
			}
		}
	}
}

int task_masks_from_places(struct task *t, const char *places, struct err *e)
{
	struct core_index c = { .task = t };
	int tasks = -1;

	if (!find_cores(&c, e))
		tasks = map_places_parse(places, step.node, add_cores, &c, e);
	free(c.at);
	if (tasks == (int) t->nlocal)
		divide_cores(t);
	if (tasks < 0 || tasks == (int) t->nlocal)
		return tasks < 0 ? -1 : 1;
	return err_set(e, "the rank map has %d tasks on this node, but the step has %u", tasks, t->nlocal);
}

/* Without the variable the map was too large for it: rank_file_env.c has warned. */
static int masks_from_env(struct task *t, struct err *e)
{
	char *places = malloc(MAP_PLACES_MAX);
	int rc;

	if (!places)
		return err_set(e, "out of memory");
	rc = spank_getenv(t->sp, "TOPIARY_PLACES", places, MAP_PLACES_MAX) ? 0 : task_masks_from_places(t, places, e);
	free(places);
	for (unsigned i = 0; rc < 0 && i < t->nlocal; i++)
		hwloc_bitmap_zero(t->masks[i]);
	return rc;
}

/*
 * The map's ranks have the job's CPUs, even where srun does not inherit them: Slurm 22.05 does not pass
 * --cpus-per-task on.
 */
static void use_job_cpus(struct task *t)
{
	char cpus[16] = "";
	unsigned long n;

	if (spank_getenv(t->sp, "SLURM_CPUS_PER_TASK", cpus, sizeof(cpus)))
		return;
	n = strtoul(cpus, NULL, 10);
	if (n > t->cpus && n < NO_VAL16)
		t->cpus = n;
}

int task_masks_from_map(struct task *t, struct err *e)
{
	int rc;

	if (step.follows_map && step.user_binds && !t->local)
		slurm_spank_log("topiary: step %s: --topo-matrix: tasks are on the nodes of the rank map, but keep the "
				"CPUs of Slurm's own binding (--cpu-bind, --hint, --threads-per-core or DefCpuBind)",
				step.name);
	if (!step.follows_map || step.user_binds)
		return 0;
	rc = step.is_local ? masks_from_env(t, e) : err_set(e, "TopologyFile describes another machine");
	if (rc > 0) {
		t->rebind = true;
		use_job_cpus(t);
	}
	return rc < 0 ? err_within(e, "tasks run on the rank map's nodes, but are not bound by it on this node") : rc;
}
