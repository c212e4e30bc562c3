/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "mapped.h"
#include "task.h"
#include "topo/machine.h"
#include "topo/restrict.h"

enum { MAX_CORES = 65536 };

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
