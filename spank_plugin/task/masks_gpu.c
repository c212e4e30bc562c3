/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <slurm/slurm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "bind/gpu.h"
#include "hwview/restrict.h"
#include "gpus.h"
#include "options.h"
#include "step/step.h"
#include "task.h"

enum { LIST = GPU_LIST_SIZE, MAX_TASKS = 65536, POLL_NS = 100000 };
#define WAIT_SECONDS 1.0

/* The user's own numbers count within those of ROCR_VISIBLE_DEVICES: that is not narrowed then. */
#define OWN_NUMBERS "HIP_VISIBLE_DEVICES"

/*
 * Slurm may have bound each task to some GPUs, and tells a task no others. So each writes its own here, and waits until
 * all have.
 */
static struct exchange {
	atomic_uint arrived;
	unsigned n;
	char list[][LIST];
} *exchange;

int task_gpus_open(spank_t sp, int argc, char **argv)
{
	uint32_t n;
	void *memory;

	(void) argc, (void) argv;
	if (options.bind.place != PLACE_GPU || step.dir < 0 || step.id >= SLURM_MAX_NORMAL_STEP_ID ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &n) || !n || n > MAX_TASKS)
		return 0;
	memory = mmap(NULL, sizeof(*exchange) + (size_t) n * LIST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return 0;
	exchange = memory;
	exchange->n = n;
	return 0;
}

struct step_gpus {
	char own[LIST];			/* of this task: the node's numbers */
	char *all;			/* of all tasks of the step here, each once */
	unsigned n;			/* of all */
	hwloc_topology_t node;
	hwloc_bitmap_t *near;
	uint64_t *fixed, *gpus;		/* of each local task; fixed: NULL if each sees all */
};

static void step_gpus_free(struct step_gpus *s)
{
	for (unsigned i = 0; s->near && i < s->n; i++)
		hwloc_bitmap_free(s->near[i]);
	free(s->near);
	free(s->fixed);
	free(s->gpus);
	free(s->all);
	if (s->node)
		hwloc_topology_destroy(s->node);
}

/* 0 when the lists of all tasks are there. A task whose program could not be started never arrives. */
static int exchange_wait(const struct step_gpus *s, const struct task *t, struct err *e)
{
	double until = clock_now() + WAIT_SECONDS;

	if (!exchange || exchange->n != t->nlocal)
		return err_set(e, "no memory to exchange the GPUs of this node's tasks");
	snprintf(exchange->list[t->local], LIST, "%s", s->own);
	atomic_fetch_add(&exchange->arrived, 1);
	while (atomic_load(&exchange->arrived) < exchange->n) {
		if (clock_now() > until)
			return err_set(e, "only %u of this node's %u tasks have begun after %.0f s; CPUs and GPUs stay "
				       "as Slurm bound them", atomic_load(&exchange->arrived), exchange->n,
				       WAIT_SECONDS);
		nanosleep(&(struct timespec){ 0, POLL_NS }, NULL);
	}
	return 0;
}

/* Append the ids of a list that are not in out yet. */
static void list_join(struct buf *out, const char *list)
{
	char text[LIST], id[LIST], *save = NULL;

	snprintf(text, sizeof(text), "%s", list);
	for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		snprintf(id, sizeof(id), "%s", one);
		if (!out->len || !gpu_which(id, out->data))
			buf_printf(out, "%s%s", out->len ? "," : "", id);
	}
}

/* All GPUs of the step here, and whose they are if tasks differ. */
static int find_all(struct step_gpus *s, const struct task *t, struct err *e)
{
	struct buf all = {0};
	bool differ = false;

	if (exchange_wait(s, t, e))
		return -1;
	for (unsigned i = 0; i < t->nlocal; i++) {
		list_join(&all, exchange->list[i]);
		differ |= strcmp(exchange->list[i], exchange->list[0]) != 0;
	}
	s->all = all.data;
	s->n = gpu_count(s->all);
	if (all.failed)
		return err_set(e, "out of memory");
	if (!differ)
		return 0;
	if (t->nlocal > GPU_MATCH_GPUS)
		return err_set(e, "Slurm has bound GPUs to more than %u tasks of this node; their CPUs stay as Slurm "
			       "bound them", GPU_MATCH_GPUS);
	if (!(s->fixed = calloc(t->nlocal, sizeof(*s->fixed))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < t->nlocal; i++)
		s->fixed[i] = gpu_which(exchange->list[i], s->all);
	return 0;
}

static int find_near(struct step_gpus *s, struct err *e)
{
	if (!(s->near = calloc(s->n, sizeof(*s->near))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->n; i++)
		if (!(s->near[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	return gpu_localities(s->node, s->all, s->near, e);
}

/* A variable is narrowed, never set; one with other GPUs than the step's is the user's. */
static void narrow_variables(const struct task *t, const struct step_gpus *s)
{
	char list[LIST], mine[LIST];

	if (s->fixed || task_env_has(t->sp, OWN_NUMBERS))
		return;
	for (const char *const *name = gpus_variables; *name; name++)
		if (!spank_getenv(t->sp, *name, list, sizeof(list)) && gpu_count(list) == s->n &&
		    !gpu_subset(list, s->gpus[t->local], mine, sizeof(mine)))
			spank_setenv(t->sp, *name, mine, 1);
}

/* For the choice of network devices. GPUs without a locality of their own say nothing. */
static void keep_near(struct task *t, const struct step_gpus *s, const hwloc_bitmap_t *places)
{
	hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(s->node);

	if (!(t->near = calloc(t->nlocal, sizeof(*t->near))))
		return;
	for (unsigned i = 0; i < t->nlocal; i++) {
		if (!(t->near[i] = hwloc_bitmap_alloc()))
			continue;
		for (unsigned k = 0; k < s->n; k++)
			if (s->gpus[i] >> k & 1)
				hwloc_bitmap_or(t->near[i], t->near[i], s->near[k]);
		if (hwloc_bitmap_isincluded(all, t->near[i]))
			hwloc_bitmap_copy(t->near[i], places[i]);
	}
}

/* Slurm chooses a step's cores without regard to GPUs. Says so where the job has nearer ones than the step. */
static void warn_far(const struct task *t, const struct step_gpus *s, const hwloc_bitmap_t *places)
{
	hwloc_bitmap_t near = hwloc_bitmap_alloc(), job = NULL;
	char *cores = NULL;
	unsigned far = 0;

	if (!t->local && near && !spank_get_item(t->sp, S_JOB_ALLOC_CORES, &cores) && cores && *cores)
		job = restrict_cpus(s->node, cores, NULL);
	for (unsigned i = 0; job && i < t->nlocal; i++) {
		hwloc_bitmap_zero(near);
		for (unsigned k = 0; k < s->n; k++)
			if (s->gpus[i] >> k & 1)
				hwloc_bitmap_or(near, near, s->near[k]);
		if (hwloc_bitmap_intersects(near, places[i]))
			continue;
		hwloc_bitmap_and(near, near, job);
		far += !hwloc_bitmap_isincluded(near, hwloc_topology_get_topology_cpuset(t->topology));
	}
	if (far)
		slurm_spank_log("topiary: step %s: %u of the %u tasks of this node %s far from %s GPUs: the job has "
				"cores near these, but Slurm did not give them to the step; srun without -c and "
				"--exact gives a step all cores of its job", step.name, far, t->nlocal,
				far == 1 ? "is" : "are", far == 1 ? "its" : "their");
	hwloc_bitmap_free(near);
	hwloc_bitmap_free(job);
}

static int step_gpus_place(struct step_gpus *s, struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	struct gpu_places how = { .topology = t->topology, .ntasks = t->nlocal, .cpus = t->cpus,
		.whole = t->whole };

	if (find_all(s, t, e) || find_near(s, e))
		return -1;
	if (!(s->gpus = calloc(t->nlocal, sizeof(*s->gpus))))
		return err_set(e, "out of memory");
	how.node = s->node;
	how.near = s->near;
	how.ngpus = s->n;
	how.fixed = s->fixed;
	if (gpu_place(&how, places, s->gpus, e))
		return -1;
	warn_far(t, s, places);
	narrow_variables(t, s);
	keep_near(t, s, places);
	t->gpus = s->all;
	t->which_gpus = s->gpus;
	s->all = NULL;
	s->gpus = NULL;
	return 1;
}

int task_places_from_gpus(struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	struct step_gpus s = {0};
	char visible[LIST];
	int rc;

	gpus_visible(t->sp, visible, sizeof(visible));
	/* Slurm sets NoDevFiles where the step has none. */
	if (!gpu_count(visible) || !strcmp(visible, "NoDevFiles"))
		return 0;
	rc = step_adopt_node(&s.node, e) || gpus_of_task(t->sp, s.node, s.own, sizeof(s.own), e) ? -1 :
	     step_gpus_place(&s, t, places, e);
	step_gpus_free(&s);
	return rc;
}
