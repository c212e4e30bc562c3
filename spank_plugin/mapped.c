/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "mapped.h"

#include <limits.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

#include "proxies.h"
#include "step.h"
#include "task.h"
#include "topo/machine.h"
#include "topo/restrict.h"

enum { MAX_CORES = 65536 };

bool mapped_take(spank_t sp)
{
	char given[PATH_MAX], map[PATH_MAX];

	if (proxies_take(sp))
		return true;
	if (step.id >= SLURM_MAX_NORMAL_STEP_ID || spank_getenv(sp, "SLURM_HOSTFILE", given, sizeof(given)) ||
	    spank_getenv(sp, "TOPIARY_HOSTFILE", map, sizeof(map)) || strcmp(given, map))
		return false;
	spank_unsetenv(sp, "SLURM_HOSTFILE");
	spank_unsetenv(sp, "SLURM_DISTRIBUTION");
	return true;
}

/* The map counts the cores that the job has on the node, and the topology those of the step. */
struct cores {
	struct task *task;
	int *at;		/* of each of the job's, where it is among the step's; -1: the step does not have it */
	unsigned n;
};

static int cores_match(struct cores *c, const char *job, const char *own, unsigned char *in_job, unsigned char *in_step, struct err *e)
{
	int at = 0;

	if (cores_parse(job, in_job, MAX_CORES, e) || cores_parse(own, in_step, MAX_CORES, e))
		return -1;
	for (unsigned i = 0; i < MAX_CORES; at += in_step[i++])
		if (in_job[i])
			c->at[c->n++] = in_step[i] ? at : -1;
	return 0;
}

static int cores_find(struct cores *c, struct err *e)
{
	unsigned char *in = malloc(2 * MAX_CORES);
	char *job = NULL, *own = NULL;
	spank_t sp = c->task->sp;
	int rc;

	c->at = malloc(MAX_CORES * sizeof(*c->at));
	if (!in || !c->at)
		rc = err_set(e, "out of memory");
	else if (spank_get_item(sp, S_JOB_ALLOC_CORES, &job) || spank_get_item(sp, S_STEP_ALLOC_CORES, &own) || !job || !own)
		rc = err_set(e, "Slurm names no cores");
	else
		rc = cores_match(c, job, own, in, in + MAX_CORES, e);
	free(in);
	return rc;
}

static int add_leaves(void *data, unsigned task, unsigned first, unsigned last, struct err *e)
{
	const struct cores *c = data;
	struct task *t = c->task;
	hwloc_obj_type_t type = machine_core_type(t->topology);

	for (unsigned leaf = first; leaf <= last; leaf++) {
		hwloc_obj_t core = leaf < c->n && c->at[leaf] >= 0 ? hwloc_get_obj_by_type(t->topology, type, c->at[leaf]) : NULL;

		if (!core || task >= t->nlocal)
			return err_set(e, "the step has not all of the cores and tasks here that the map is of");
		hwloc_bitmap_or(t->masks[task], t->masks[task], core->cpuset);
	}
	return 0;
}

int mapped_fill(struct task *t, const char *places, struct err *e)
{
	struct cores c = { .task = t };
	char host[256];
	int tasks = -1;

	if (spank_getenv(t->sp, "SLURMD_NODENAME", host, sizeof(host)))
		return err_set(e, "Slurm does not name this node");
	if (!cores_find(&c, e))
		tasks = mapped_read(places, host, add_leaves, &c, e);
	free(c.at);
	if (tasks < 0 || tasks == (int) t->nlocal)
		return tasks < 0 ? -1 : 1;
	return err_set(e, "the map has %d tasks here, and the step %u", tasks, t->nlocal);
}

/* Too many places for one variable: the batch script's output has a line about that. */
static int find(struct task *t, struct err *e)
{
	char *places = malloc(MAPPED_PLACES);
	int rc;

	if (!places)
		return err_set(e, "out of memory");
	rc = spank_getenv(t->sp, "TOPIARY_PLACES", places, MAPPED_PLACES) ? 0 : mapped_fill(t, places, e);
	free(places);
	for (unsigned i = 0; rc < 0 && i < t->nlocal; i++)
		hwloc_bitmap_zero(t->masks[i]);
	return rc;
}

int task_mapped(struct task *t, struct err *e)
{
	int rc;

	if (proxies_are_here() && !step.user_binds) {
		proxies_tell(t);
		return 1;
	}
	if (!step.mapped || step.user_binds)
		return 0;
	rc = step.here ? find(t, e) : err_set(e, "the topology is another system's");
	t->moved |= rc > 0;
	return rc < 0 ? err_within(e, "the job's map is followed from node to node, and not on this one") : rc;
}
