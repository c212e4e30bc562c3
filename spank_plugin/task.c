/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task.h"

#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "bind/huge.h"
#include "bind/memory.h"
#include "bind/omp.h"
#include "options.h"
#include "plain.h"
#include "report.h"
#include "step.h"
#include "told.h"
#include "topo/image.h"

enum { MAX_TASKS = 65536, MAX_TUNABLES = 4096 };

static bool env_has(void *env, const char *name)
{
	return told_has(env, name);
}

static void env_set(void *env, const char *name, const char *value)
{
	told_set(env, name, value);
}

/* A task without -c counts one CPU, too. */
static unsigned cpus_said(spank_t sp)
{
	uint32_t cpus;

	if (spank_get_item(sp, S_STEP_CPUS_PER_TASK, &cpus) || cpus >= NO_VAL16 || (cpus == 1 && !told_has(sp, "SLURM_CPUS_PER_TASK")))
		return 0;
	return cpus;
}

static int identify(struct task *t, struct err *e)
{
	int local = -1;

	if (spank_get_item(t->sp, S_TASK_ID, &local) || spank_get_item(t->sp, S_TASK_GLOBAL_ID, &t->global) ||
	    spank_get_item(t->sp, S_JOB_LOCAL_TASK_COUNT, &t->nlocal))
		return err_set(e, "Slurm does not say which task this is");
	t->local = local;
	if (t->local >= t->nlocal || t->nlocal > MAX_TASKS)
		return err_set(e, "Slurm says that this is task %d of %u", local, t->nlocal);
	t->cpus = cpus_said(t->sp);
	return 0;
}

static int load(struct task *t, struct err *e)
{
	if (image_adopt_alone(step.path, &t->topology, e))
		return -1;
	if (!(t->masks = calloc(t->nlocal, sizeof(*t->masks))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < t->nlocal; i++)
		if (!(t->masks[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	return 0;
}

static void warn(const struct task *t, struct err *e)
{
	slurm_spank_log("topiary: step %s, task %u: %s", step.name, t->global, plain(e->text));
}

/* What is the same for all tasks of a node the first of them says. */
static void warn_once(const struct task *t, struct err *e)
{
	if (!t->local)
		slurm_spank_log("topiary: step %s: %s", step.name, plain(e->text));
}

static int find_masks(struct task *t)
{
	static int (*const sources[])(struct task *t, struct err *e) = { task_mapped, task_placed, task_bound };
	struct err e;
	int rc = 0;

	for (size_t i = 0; rc <= 0 && i < sizeof(sources) / sizeof(*sources); i++)
		if ((rc = sources[i](t, &e)) < 0)
			warn_once(t, &e);
	return rc > 0 ? 0 : -1;
}

/* A cpuset may let it have less, or none of it: what follows goes by what it has. */
static int bind_cpus(struct task *t, struct err *e)
{
	hwloc_bitmap_t own = t->masks[t->local];

	if (!t->moved)
		return 0;
	t->moved = !affinity_set(own, e);
	return affinity_get(own, t->moved ? e : NULL) || !t->moved ? -1 : 0;
}

static int bind_memory(struct task *t, struct err *e)
{
	char now[256];

	if (!options.bind.memory)
		return 0;
	if (memory_tell(now, sizeof(now), e))
		return -1;
	if (strcmp(now, "default"))
		return err_set(e, "its memory: %s, which it has already, stays", now);
	return memory_bind(t->topology, &options.bind, t->masks[t->local], e);
}

static int set_threads(struct task *t, struct err *e)
{
	struct omp_task o = { t->masks[t->local], t->cpus, 0 };

	if (!options.bind.omp)
		return 0;
	for (unsigned i = 0; i < t->nlocal; i++)
		o.sharers += hwloc_bitmap_intersects(t->masks[i], o.pus) ? 1 : 0;
	return omp_export(t->topology, options.bind.omp, &o, &t->vars, e);
}

static int set_huge(struct task *t, struct err *e)
{
	char now[MAX_TUNABLES] = "", new[MAX_TUNABLES];

	if (!options.bind.huge)
		return 0;
	if (told_has(t->sp, HUGE_VARIABLE) && spank_getenv(t->sp, HUGE_VARIABLE, now, sizeof(now)))
		return err_set(e, HUGE_VARIABLE " is longer than %zu bytes", sizeof(now) - 1);
	if (huge_tunables(options.bind.huge, now, new, sizeof(new), e))
		return -1;
	/* What is there was the user's, and so is what it becomes. */
	told_set(t->sp, HUGE_VARIABLE, new);
	spank_setenv(t->sp, HUGE_VARIABLE, new, 1);
	return 0;
}

/* Each stands alone: what one cannot do does not take away what another can. */
static const struct {
	int (*give)(struct task *t, struct err *e);
	bool alike;		/* why it fails is the same for all tasks */
} gifts[] = {
	{ bind_cpus, false }, { bind_memory, false }, { set_threads, false }, { set_huge, true }, { task_nic, true },
};

/* Steps that Slurm makes for itself and for the batch script are left alone. */
static bool asked(void)
{
	const struct bind_request *b = &options.bind;

	return step.dir >= 0 && step.id < SLURM_MAX_NORMAL_STEP_ID &&
	       (b->place || b->memory || b->omp || b->huge || b->nic || b->report || step.mapped);
}

static void take_gifts(struct task *t)
{
	struct err e;

	if (load(t, &e)) {
		warn_once(t, &e);
		return;
	}
	if (find_masks(t))
		return;
	for (size_t i = 0; i < sizeof(gifts) / sizeof(*gifts); i++)
		if (gifts[i].give(t, &e))
			(gifts[i].alike ? warn_once : warn)(t, &e);
}

static void task_free(struct task *t)
{
	for (unsigned i = 0; t->masks && i < t->nlocal; i++)
		hwloc_bitmap_free(t->masks[i]);
	free(t->masks);
	if (t->topology)
		hwloc_topology_destroy(t->topology);
}

int task_prepare(spank_t sp, int argc, char **argv)
{
	struct task t = { .sp = sp, .vars = { env_has, env_set, sp } };
	struct err e;

	(void) argc, (void) argv;
	if (!asked())
		return 0;
	if (identify(&t, &e)) {
		warn(&t, &e);
		return 0;
	}
	if (step.here)
		take_gifts(&t);
	else if (!t.local)
		slurm_spank_log("topiary: step %s: the node's topology is another system's; nothing is done for its tasks", step.name);
	if (report_task(&t, &e))
		warn(&t, &e);
	task_free(&t);
	return 0;
}
