/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task.h"

#include <slurm/slurm.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "bind/gpu.h"
#include "hwview/restrict.h"
#include "options.h"
#include "step/step.h"

enum { MAX_TASKS = 65536, POLL_NS = 100000 };
#define WAIT_SECONDS 1.0

/* The user's own numbers count within those of ROCR_VISIBLE_DEVICES: that is not narrowed then. */
#define OWN_NUMBERS "HIP_VISIBLE_DEVICES"

static char step_gpus[GPU_LIST_SIZE], step_visible[GPU_LIST_SIZE];

static void read_variable(spank_t sp, const char *name, char *out, size_t size)
{
	if (spank_getenv(sp, name, out, size))
		*out = '\0';
}

/* The value of the first of these; "": none. */
static void read_visible(spank_t sp, char *out, size_t size)
{
	*out = '\0';
	for (const char *const *name = gpu_variables; !*out && *name; name++)
		read_variable(sp, *name, out, size);
}

/*
 * Slurm may have bound each task to some GPUs, and tells a task no others. So each writes its own here, and waits until
 * all have.
 */
static struct exchange {
	atomic_uint arrived;
	unsigned n;
	char list[][GPU_LIST_SIZE];
} *exchange;

int gpus_open(spank_t sp, int, char **)
{
	uint32_t n;

	read_variable(sp, "SLURM_STEP_GPUS", step_gpus, sizeof(step_gpus));
	read_visible(sp, step_visible, sizeof(step_visible));
	if (options.bind.place == PLACE_GPU &&
	    (exchange = step_share(sp, sizeof(*exchange), GPU_LIST_SIZE, MAX_TASKS, &n)))
		exchange->n = n;
	return 0;
}

int gpus_of_task(spank_t sp, hwloc_topology_t node, char *out, size_t size, struct err *e)
{
	char task[GPU_LIST_SIZE], visible[GPU_LIST_SIZE];

	read_variable(sp, "SLURM_STEP_GPUS", task, sizeof(task));
	read_visible(sp, visible, sizeof(visible));
	return gpu_own(node, "", &(struct gpu_lists){ step_gpus, step_visible, task, visible }, out, size, e);
}

struct step_gpus {
	char own[GPU_LIST_SIZE];			/* of this task: the node's numbers */
	char *all;			/* of all tasks of the step here, each once */
	unsigned n;			/* of all */
	hwloc_topology_t node;
	hwloc_bitmap_t *near;
	uint64_t *fixed, *gpus;		/* of each local task; fixed: NULL if each sees all */
};

/* 0 when the lists of all tasks are there. A task whose program could not be started never arrives. */
static int exchange_wait(const struct step_gpus *s, const struct task *t, struct err *e)
{
	double until = clock_now() + WAIT_SECONDS;

	if (!exchange || exchange->n != t->nlocal)
		return err_set(e, "no memory to exchange the GPUs of this node's tasks");
	snprintf(exchange->list[t->local], GPU_LIST_SIZE, "%s", s->own);
	atomic_fetch_add(&exchange->arrived, 1);
	while (atomic_load(&exchange->arrived) < exchange->n) {
		unsigned n = atomic_load(&exchange->arrived);

		if (clock_now() > until)
			return err_set(e, "only %u of this node's %u tasks %s begun after %.0f s; CPUs and GPUs stay "
				       "as Slurm bound them", n, exchange->n, n == 1 ? "has" : "have", WAIT_SECONDS);
		nanosleep(&(struct timespec){ 0, POLL_NS }, NULL);
	}
	return 0;
}

/* All GPUs of the step here, whose they are if tasks differ, and which PUs are near each. */
static int find_all(struct step_gpus *s, const struct task *t, struct err *e)
{
	struct buf all = {0};
	bool differ = false;

	if (exchange_wait(s, t, e))
		return -1;
	for (unsigned i = 0; i < t->nlocal; i++) {
		char text[GPU_LIST_SIZE], id[GPU_LIST_SIZE], *save = NULL;

		snprintf(text, sizeof(text), "%s", exchange->list[i]);
		for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
			snprintf(id, sizeof(id), "%s", one);
			if (!all.len || !gpu_which(id, all.data))
				buf_printf(&all, "%s%s", all.len ? "," : "", id);
		}
		differ |= strcmp(exchange->list[i], exchange->list[0]) != 0;
	}
	s->all = all.data;
	s->n = gpu_count(s->all);
	if (all.failed)
		return err_set(e, "out of memory");
	if (differ && t->nlocal > GPU_MATCH_GPUS)
		return err_set(e, "Slurm has bound GPUs to more than %u tasks of this node; their CPUs stay as Slurm "
			       "bound them", GPU_MATCH_GPUS);
	if (differ && !(s->fixed = calloc(t->nlocal, sizeof(*s->fixed))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; differ && i < t->nlocal; i++)
		s->fixed[i] = gpu_which(exchange->list[i], s->all);
	if (!(s->near = calloc(s->n, sizeof(*s->near))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->n; i++)
		if (!(s->near[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	return gpu_localities(s->node, s->all, s->near, e);
}

/* Set out to the PUs near the GPUs of a local task. */
static void near_of_task(const struct step_gpus *s, unsigned task, hwloc_bitmap_t out)
{
	hwloc_bitmap_zero(out);
	for (unsigned k = 0; k < s->n; k++)
		if (s->gpus[task] >> k & 1)
			hwloc_bitmap_or(out, out, s->near[k]);
}

/* A variable is narrowed, never set; one with other GPUs than the step's is the user's. */
static void narrow_variables(const struct task *t, const struct step_gpus *s)
{
	char list[GPU_LIST_SIZE], mine[GPU_LIST_SIZE];

	if (s->fixed || task_env_has(t->sp, OWN_NUMBERS))
		return;
	for (const char *const *name = gpu_variables; *name; name++)
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
		near_of_task(s, i, t->near[i]);
		if (hwloc_bitmap_isincluded(all, t->near[i]))
			hwloc_bitmap_copy(t->near[i], places[i]);
	}
}

static int step_gpus_place(struct step_gpus *s, struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	struct gpu_places how = { .topology = t->topology, .ntasks = t->nlocal, .cpus = t->cpus,
		.whole = t->whole };

	if (find_all(s, t, e))
		return -1;
	if (!(s->gpus = calloc(t->nlocal, sizeof(*s->gpus))))
		return err_set(e, "out of memory");
	how.node = s->node;
	how.near = s->near;
	how.ngpus = s->n;
	how.fixed = s->fixed;
	if (gpu_place(&how, places, s->gpus, e))
		return -1;
	/* Slurm chooses a step's cores without regard to GPUs. Says so where the job has nearer ones than the step. */
	hwloc_bitmap_t near = hwloc_bitmap_alloc(), job = NULL;
	char *cores = NULL;
	unsigned far = 0;

	if (near && !spank_get_item(t->sp, S_JOB_ALLOC_CORES, &cores) && cores && *cores)
		job = restrict_cpus(s->node, cores, NULL);
	for (unsigned i = 0; job && i < t->nlocal; i++) {
		near_of_task(s, i, near);
		if (hwloc_bitmap_intersects(near, places[i]))
			continue;
		hwloc_bitmap_and(near, near, job);
		if (hwloc_bitmap_isincluded(near, hwloc_topology_get_topology_cpuset(t->topology)))
			continue;
		far++;
		t->lacks_cores |= i == t->local;
	}
	if (far && !t->local)
		slurm_spank_log("topiary: step %s: %u of the %u task%s of this node %s far from %s GPUs: the job has "
				"cores near these, but Slurm did not give them to the step; srun without -c and "
				"--exact gives a step all cores of its job", step.name, far, t->nlocal,
				t->nlocal == 1 ? "" : "s", far == 1 ? "is" : "are", far == 1 ? "its" : "their");
	hwloc_bitmap_free(near);
	hwloc_bitmap_free(job);
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
	char visible[GPU_LIST_SIZE];
	int rc;

	read_visible(t->sp, visible, sizeof(visible));
	/* Slurm sets NoDevFiles where the step has none. */
	if (!gpu_count(visible) || !strcmp(visible, "NoDevFiles"))
		return 0;
	rc = step_adopt_node(&s.node, e) || gpus_of_task(t->sp, s.node, s.own, sizeof(s.own), e) ? -1 :
	     step_gpus_place(&s, t, places, e);
	for (unsigned i = 0; s.near && i < s.n; i++)
		hwloc_bitmap_free(s.near[i]);
	free(s.near);
	free(s.fixed);
	free(s.gpus);
	free(s.all);
	if (s.node)
		hwloc_topology_destroy(s.node);
	return rc;
}
