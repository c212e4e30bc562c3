/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task.h"

#include <slurm/slurm.h>

#include "bind/place.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"
#include "map_places.h"
#include "options.h"
#include "step/step.h"
#include "step/topology.h"

/* --- Slurm's own binding --- */

/* Slurm's binding of the node's tasks, as far as one of them can see it: the list of all, or only its own affinity. */
enum { MAX_LIST = 1 << 18 };

/*
 * As Slurm parses them (src/plugins/task/affinity/affinity.c, get_cpuset): hexadecimal masks, or decimal or
 * hexadecimal CPU numbers.
 */
static int read_mask(const char *text, hwloc_bitmap_t out)
{
	return hwloc_bitmap_taskset_sscanf(out, text);
}

static int read_cpu(const char *text, hwloc_bitmap_t out)
{
	char *end;
	unsigned long cpu = strtoul(text, &end, strncmp(text, "0x", 2) ? 10 : 16);

	return *end || end == text || cpu >= 1 << 16 || hwloc_bitmap_only(out, cpu) ? -1 : 0;
}

static const struct bind_type {
	const char *type;		/* prefix of SLURM_CPU_BIND_TYPE */
	int (*read)(const char *text, hwloc_bitmap_t out);
} bind_types[] = {
	{ "mask_cpu", read_mask },
	{ "map_cpu", read_cpu },
};

/* A list shorter than the number of tasks is repeated. */
static int read_list(const struct bind_type *k, char *list, struct task *t)
{
	unsigned n = 0;
	char *save = NULL;

	for (char *one = strtok_r(list, ",", &save); one && n < t->nlocal; one = strtok_r(NULL, ",", &save))
		if (k->read(one, t->masks[n++]))
			return -1;
	if (!n)
		return -1;
	for (unsigned i = n; i < t->nlocal; i++)
		if (hwloc_bitmap_copy(t->masks[i], t->masks[i % n]))
			return -1;
	return 0;
}

int task_masks_from_slurm(struct task *t, struct err *e)
{
	hwloc_const_bitmap_t own = hwloc_topology_get_topology_cpuset(t->topology);

	/* The list is what was requested; not every task plugin applies it. */
	hwloc_bitmap_t now = hwloc_bitmap_alloc();
	char type[256] = "", *list = malloc(MAX_LIST);
	const struct bind_type *k = NULL;
	int rc = -1;

	spank_getenv(t->sp, "SLURM_CPU_BIND_TYPE", type, sizeof(type));
	for (size_t i = 0; !k && i < sizeof(bind_types) / sizeof(*bind_types); i++)
		if (!strncmp(type, bind_types[i].type, strlen(bind_types[i].type)))
			k = &bind_types[i];
	if (list && k && !spank_getenv(t->sp, "SLURM_CPU_BIND_LIST", list, MAX_LIST) && !read_list(k, list, t) && now &&
	    !machine_bound(0, now, NULL) && hwloc_bitmap_isequal(now, t->masks[t->local]))
		rc = 0;
	free(list);
	hwloc_bitmap_free(now);
	if (rc) {
		/* Nothing is known of the other tasks: assume that they may run wherever this one may. */
		if (machine_bound(0, t->masks[0], e))
			return -1;
		for (unsigned i = 1; i < t->nlocal; i++)
			if (hwloc_bitmap_copy(t->masks[i], t->masks[0]))
				return err_set(e, "out of memory");
	}
	/* Without a binding a task may use all CPUs of the node, including those outside the step. */
	for (unsigned i = 0; i < t->nlocal; i++) {
		if (!hwloc_bitmap_intersects(t->masks[i], own))
			return err_set(e, "Slurm bound local task %u of this node to CPUs outside the step", i);
		hwloc_bitmap_and(t->masks[i], t->masks[i], own);
	}
	return 1;
}

/* --- --topo-place --- */

/* Without GPUs memory comes first, which is said where GPUs were asked for by name. */
static int places_choose(struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	struct bind_request r = options.bind;
	int rc = r.place == PLACE_GPU ? task_places_from_gpus(t, places, e) : 0;

	if (rc)
		return rc < 0 ? -1 : 0;
	if (r.place == PLACE_GPU) {
		r.place = PLACE_MEM;
		if (options_set_by_user("topo-place") && !t->local)
			slurm_spank_log("topiary: step %s: --topo-place=gpu: the step has no GPUs on this node; its "
					"tasks are placed as with mem", step.name);
	}
	return place_tasks(t->topology, &r, t->nlocal, t->cpus, t->whole, places, e);
}

static int tasks_place(struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	for (unsigned i = 0; i < t->nlocal; i++)
		if (!(places[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	if (places_choose(t, places, e) || (step.user_binds && task_masks_from_slurm(t, e) < 0))
		return -1;
	for (unsigned i = 0; i < t->nlocal; i++) {
		unsigned has = hwloc_bitmap_weight(t->masks[i]), needs = t->cpus > 1 ? t->cpus : 1;

		/*
		 * Within the binding that the user asked Slurm for; where that leaves a task fewer CPUs than it needs,
		 * Slurm's stays.
		 */
		if (step.user_binds)
			hwloc_bitmap_and(places[i], places[i], t->masks[i]);
		if (!step.user_binds || (unsigned) hwloc_bitmap_weight(places[i]) >= (needs < has ? needs : has))
			hwloc_bitmap_copy(t->masks[i], places[i]);
	}
	t->rebind = true;
	return 1;
}

/*
 * A binding that the user asked Slurm for takes precedence over the site's default and over --topo-tasks; that
 * --hint=nomultithread is one, too, is not obvious.
 */
static bool binding_wins(const struct task *t)
{
	if (!step.user_binds || options_set_by_user("topo-place"))
		return false;
	if (options_set_by_user("topo-tasks") && !t->local)
		slurm_spank_log("topiary: step %s: --topo-tasks: tasks keep the CPUs and GPUs of Slurm's own binding "
				"(--cpu-bind, --hint, --threads-per-core or DefCpuBind); add --topo-place=gpu "
				"to place them within it", step.name);
	return true;
}

int task_masks_from_option(struct task *t, struct err *e)
{
	hwloc_bitmap_t *places;
	int rc;

	if (!options.bind.place || binding_wins(t))
		return 0;
	if (!(places = calloc(t->nlocal, sizeof(*places))))
		return err_set(e, "out of memory");
	rc = tasks_place(t, places, e);
	for (unsigned i = 0; i < t->nlocal; i++)
		hwloc_bitmap_free(places[i]);
	free(places);
	return rc < 0 ? err_within(e, options_set_by_user("topo-place") || !options.bind.tasks ? "--topo-place" :
				   "--topo-tasks") : rc;
}

/* --- the job's rank map --- */

enum { MAX_CORES = 65536 };

/* The map numbers the job's cores on the node, the topology has those of the step. */
struct core_index {
	struct task *task;
	int *at;		/* for each core of the job, its index among the step's; -1: not in the step */
	unsigned n;
	unsigned own;		/* cores of the step */
};

static int find_cores(struct core_index *c, struct err *e)
{
	hwloc_topology_t t = c->task->topology;
	unsigned char *in_job = malloc(2 * MAX_CORES);	/* and those of the step */
	spank_t sp = c->task->sp;
	const char *own = step_cores(sp);
	char *job = NULL;
	int rc = -1;

	c->at = malloc(MAX_CORES * sizeof(*c->at));
	if (!in_job || !c->at)
		err_set(e, "out of memory");
	else if (spank_get_item(sp, S_JOB_ALLOC_CORES, &job) || !job || !own)
		err_set(e, "Slurm does not provide the cores of the job or the step");
	else if (!cores_parse(job, in_job, MAX_CORES, e) && !cores_parse(own, in_job + MAX_CORES, MAX_CORES, e))
		rc = 0;
	for (unsigned i = 0; !rc && i < MAX_CORES; c->own += in_job[MAX_CORES + i++])
		if (in_job[i])
			c->at[c->n++] = in_job[MAX_CORES + i] ? (int) c->own : -1;
	if (!rc && c->own != (unsigned) hwloc_get_nbobjs_by_type(t, machine_core_type(t)))
		rc = err_set(e, "a core of the step is offline");
	free(in_job);
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

/* Tasks that share a core, where each has all its CPUs (lib/map/places/places.c), divide its PUs among them. */
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
	return err_set(e, "the rank map has %d task%s on this node, but the step has %u", tasks, tasks == 1 ? "" : "s",
		       t->nlocal);
}

int task_masks_from_map(struct task *t, struct err *e)
{
	char *places, cpus[16] = "";
	unsigned long n;
	int rc = -1;

	if (step.follows_map && step.user_binds && !t->local)
		slurm_spank_log("topiary: step %s: --topo-matrix: tasks are on the nodes of the rank map, but keep the "
				"CPUs of Slurm's own binding (--cpu-bind, --hint, --threads-per-core or DefCpuBind)",
				step.name);
	if (!step.follows_map || step.user_binds)
		return 0;
	if (!step.is_local) {
		err_set(e, "TopologyFile describes another machine");
	} else if (!(places = malloc(MAP_PLACES_MAX))) {
		err_set(e, "out of memory");
	} else {
		/* Without the variable the map was too large for it: rank_file.c has warned. */
		rc = spank_getenv(t->sp, "TOPIARY_PLACES", places, MAP_PLACES_MAX) ? 0 :
		     task_masks_from_places(t, places, e);
		free(places);
	}
	for (unsigned i = 0; rc < 0 && i < t->nlocal; i++)
		hwloc_bitmap_zero(t->masks[i]);
	if (rc < 0)
		return err_within(e, "tasks run on the rank map's nodes, but are not bound by it on this node");
	if (rc > 0)
		t->rebind = true;
	/*
	 * The map's ranks have the job's CPUs, even where srun does not inherit them: Slurm 22.05 does not pass
	 * --cpus-per-task on.
	 */
	if (rc > 0 && !spank_getenv(t->sp, "SLURM_CPUS_PER_TASK", cpus, sizeof(cpus))) {
		n = strtoul(cpus, NULL, 10);
		if (n > t->cpus && n < NO_VAL16)
			t->cpus = n;
	}
	return rc;
}
